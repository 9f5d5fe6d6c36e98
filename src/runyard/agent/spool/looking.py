"""Safe reading of bundles in a drop box, whose contents may be malicious.

No link is followed and nothing is opened by a path: every directory is opened relative to its parent, and the opened
file is compared with the one that was listed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from runyard import errors
from runyard.model import paths, units

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO that replaces a file does not block
GET_GENERATION = 0x80087601  # FS_IOC_GETVERSION, which file systems answer with an int
DEEPEST = 50  # nested directories, each of them open during the scan
_KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device", stat.S_IFCHR: "a device",
}  # fmt: skip

Identity = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Most:
    """Limits of one bundle."""

    bytes: int
    files: int


@dataclass(kw_only=True, slots=True)
class Bundle:
    """The contents of one bundle."""

    owner: int  # the uid that owns all of it
    files: dict[str, os.stat_result] = field(default_factory=dict)  # by path below the bundle
    folders: dict[str, os.stat_result] = field(default_factory=dict)
    size: int = 0

    def fingerprint(self) -> str:
        """Differs if anything in it was changed, added or removed."""
        seen = [(path, identity(status)) for path, status in sorted({**self.files, **self.folders}.items())]
        return hashlib.sha256(repr(seen).encode()).hexdigest()


def identity(status: os.stat_result) -> Identity:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)


def generation(name: str, box: int) -> int:
    """Distinguishes a directory from a later one with the same inode; 0 if the file system does not report it."""
    with contextlib.suppress(OSError, Changed, errors.InvalidInput), opened(name, DIRECTORY, box, name) as folder:
        return int.from_bytes(fcntl.ioctl(folder, GET_GENERATION, bytes(8))[:4], sys.byteorder)
    return 0


def look(bundle: int, most: Most) -> Bundle:
    """Everything below this open directory; raises InvalidInput for what a bundle may not contain."""
    root = os.fstat(bundle)
    seen = Bundle(owner=root.st_uid)
    _Look(seen, root.st_dev, most).into(bundle, "", 0)
    return seen


class _Look:
    def __init__(self, seen: Bundle, device: int, most: Most) -> None:
        self._seen, self._device, self._most = seen, device, most

    def into(self, folder: int, above: str, depth: int) -> None:
        if depth > DEEPEST:
            raise errors.InvalidInput(f"{above[:80]}…: more than {DEEPEST} nested directories", "use fewer levels")
        for name in os.listdir(folder):
            path = paths.relative(f"{above}{name}", "bundle")
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._check(path, status)
            if stat.S_ISDIR(status.st_mode):
                self._seen.folders[path] = status
                with opened(name, DIRECTORY, folder, path) as deeper:
                    self.into(deeper, f"{path}/", depth + 1)
            else:
                self._seen.files[path] = status

    def _check(self, path: str, status: os.stat_result) -> None:
        _check_kind(path, status)
        if status.st_uid != self._seen.owner:
            raise errors.InvalidInput(f"{path} and the bundle have different owners", "copy it")
        if status.st_dev != self._device:
            raise errors.InvalidInput(f"{path} is on another file system than the bundle", "copy it")
        self._seen.size += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if self._seen.size > self._most.bytes:
            raise errors.InvalidInput(f"it has more than {units.show_size(self._most.bytes)}", "see spool_limit")
        if len(self._seen.files) + len(self._seen.folders) >= self._most.files:
            raise errors.InvalidInput(f"it has more than {self._most.files:,} files", "see spool_files")


def _check_kind(path: str, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        what = _KINDS.get(kind, "no file")
        raise errors.InvalidInput(f"{path} is {what}", "a bundle has plain files and directories only")
    if kind == stat.S_IFREG and status.st_nlink != 1:
        raise errors.InvalidInput(f"{path} has more than one hard link", "copy it")


@contextlib.contextmanager
def opened(name: str, flags: int, folder: int, path: str) -> Iterator[int]:
    """Relative to the directory.
    Raises Changed if it was replaced meanwhile, InvalidInput if it cannot be read."""
    try:
        file = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENXIO):
            raise Changed(path) from None
        raise errors.InvalidInput(f"{path} cannot be read: {(error.strerror or '').lower()}", "chmod a+rX") from None
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def opened_below(bundle: int, path: str, seen: os.stat_result) -> Iterator[int]:
    """The same file that was listed."""
    with contextlib.ExitStack() as stack:
        folder, (*above, name) = bundle, path.split("/")
        for part in above:
            folder = stack.enter_context(opened(part, DIRECTORY, folder, path))
        file = stack.enter_context(opened(name, FILE, folder, path))
        if identity(os.fstat(file)) != identity(seen):
            raise Changed(path)
        yield file


def read_digest(bundle: int, path: str, seen: os.stat_result) -> str:
    with opened_below(bundle, path, seen) as file:
        with open(file, "rb", buffering=0, closefd=False) as reader:
            digest = hashlib.file_digest(reader, "sha256").hexdigest()
        if identity(os.fstat(file)) != identity(seen):
            raise Changed(path)
    return f"sha256:{digest}"


def read_text(bundle: int, path: str, seen: os.stat_result, longest: int) -> bytes:
    if seen.st_size > longest:
        raise errors.InvalidInput(f"{path} has more than {units.show_size(longest)}")
    with opened_below(bundle, path, seen) as file, open(file, "rb", closefd=False) as reader:
        return reader.read(longest)


class Changed(Exception):
    """It has changed since it was listed: it is still being written."""
