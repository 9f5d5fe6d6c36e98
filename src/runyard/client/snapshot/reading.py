"""Read files and compute their digests; refuse special files, and files that change while they are read."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from runyard import errors
from runyard.client.snapshot.stat_cache import StatCache, identity
from runyard.model import paths
from runyard.model.tree import TreeFile, TreeLink

TRIES = 3
SMALL = 1 << 20  # bytes
READERS = 2  # threads, where there is so much to hash that it counts
WORTH, WORTH_EACH = 8 << 20, 16 << 10  # bytes of all files, and of each on average
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO that came in between does not hold us up
_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a folder",
}  # fmt: skip


@dataclass(kw_only=True, slots=True)
class FoundFiles:
    """The files found below a root."""

    root: Path
    files: dict[str, os.stat_result] = field(default_factory=dict)
    links: list[TreeLink] = field(default_factory=list)


def look(root: Path, names: Iterable[str], what: str) -> FoundFiles:
    """Those that exist. Raises InvalidInput for what cannot be part of a tree."""
    found, folders = FoundFiles(root=root), _Folders(root)
    for name in names:
        path = paths.relative(name, what)
        status = folders.status(path)
        if status is None:
            continue
        if stat.S_ISREG(status.st_mode):
            found.files[path] = status
        elif stat.S_ISLNK(status.st_mode):
            found.links.append(TreeLink(path, _target(root, path, what)))
        else:
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
            raise errors.InvalidInput(f"{what}: {path} is {kind}", "remove it, or leave it out of the snapshot")
    return found


class _Folders:
    """Distinguishes files below a link from those below the root: git lists files of a folder that became a link."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)
        self._real: dict[str, bool] = {"": True}

    def status(self, path: str) -> os.stat_result | None:
        if not self._is_real(path.rpartition("/")[0]):
            return None
        return self._lstat(path)

    def _is_real(self, folder: str) -> bool:
        known = self._real.get(folder)
        if known is None:
            status = self._lstat(folder) if self._is_real(folder.rpartition("/")[0]) else None
            known = self._real[folder] = status is not None and stat.S_ISDIR(status.st_mode)
        return known

    def _lstat(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(f"{self._root}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(path, error) from None


def _target(root: Path, path: str, what: str) -> str:
    """An absolute target inside the root becomes a relative one."""
    target = os.readlink(root / path)
    if os.path.isabs(target) and os.path.normpath(target).startswith(f"{root}/"):
        target = os.path.relpath(os.path.normpath(target), (root / path).parent)
    try:
        return paths.link_target(target, path, what)
    except errors.InvalidInput:
        raise errors.InvalidInput(
            f"{what}: the link {path!r} leads outside, to {target!r}",
            "leave it out of the snapshot, and name what it leads to with --data",
        ) from None


def digests(found: FoundFiles, cache: StatCache, advance: Callable[[int], object]) -> list[TreeFile]:
    """The files with their digests, in any order; `advance` gets the bytes that are done."""
    stopped = threading.Event()

    def read(share: Iterable[tuple[str, os.stat_result]]) -> list[TreeFile]:
        try:
            return [_described(found, cache, path, status, advance) for path, status in share if not stopped.is_set()]
        except BaseException:
            stopped.set()
            raise

    files = list(found.files.items())
    if sum(status.st_size for _, status in files) < max(WORTH, len(files) * WORTH_EACH):
        return read(files)
    with ThreadPoolExecutor(READERS) as pool:
        return [file for share in pool.map(read, (files[line::READERS] for line in range(READERS))) for file in share]


def _described(
    found: FoundFiles, cache: StatCache, path: str, status: os.stat_result, advance: Callable[[int], object]
) -> TreeFile:
    digest = cache.get(path, status)
    if digest is None:
        read_at = time.time_ns()
        digest, status = read_digest(found.root / path, path)
        cache.put(path, status, digest, read_at)
    advance(status.st_size)
    return TreeFile(path, digest, status.st_size, bool(status.st_mode & 0o100))


def read_digest(place: Path, shown: str) -> tuple[str, os.stat_result]:
    for _ in range(TRIES):
        try:
            with open(os.open(place, _READ), "rb", buffering=0) as file:
                before = os.fstat(file.fileno())
                digest = _digest(file, before.st_size)
                after = os.fstat(file.fileno())
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                raise changed(shown) from None
            raise unreadable(shown, error) from None
        if identity(before) == identity(after) and stat.S_ISREG(after.st_mode):
            return f"sha256:{digest}", after
    raise changed(shown)


def _digest(file: io.FileIO, size: int) -> str:
    """A small file is read at once: a buffer for pieces costs more than hashing it."""
    if size <= SMALL:
        data = file.read(size + 1)
        if len(data) <= size:
            return hashlib.sha256(data).hexdigest()
        file.seek(0)  # it has grown
    return hashlib.file_digest(file, "sha256").hexdigest()


def changed(path: str) -> errors.InvalidInput:
    return errors.InvalidInput(
        f"{path} changed while it was read; nothing was submitted",
        "submit again when no program writes to it, or leave it out of the snapshot",
    )


def unreadable(path: str, error: OSError) -> errors.InvalidInput:
    return errors.InvalidInput(
        f"{path} cannot be read: {(error.strerror or '').lower()}; nothing was submitted",
        "change its permissions, or leave it out of the snapshot",
    )
