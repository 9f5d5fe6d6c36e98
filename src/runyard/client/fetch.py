"""Fetch outputs: by digest, verified, complete or not at all, and never outside the target directory. An interrupted
transfer continues where it ended, also in another process.

The paths come from a run, so they are not trusted: every directory on the way is opened without following symbolic
links, and files are made relative to the opened directory, so that nothing can be swapped underneath.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runyard import errors
from runyard.client.retries import Patience
from runyard.client.run_inputs import find_checkout

if TYPE_CHECKING:
    from runyard.client.outputs import Output
    from runyard.client.session import Session

Progress = Callable[[int], None]
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PART = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
PARTIAL = 206
BLOCK = 1 << 20


def bring(client: Session, outputs: Iterable[Output], directory: Path, progress: Progress) -> list[Path]:
    """Fetch every output below `directory`; `progress` gets the bytes that are done, including earlier ones."""
    brought = []
    for output in outputs:
        parts = safe_parts(output.path)
        try:
            _bring_one(client, output, parts, directory, progress)
        except OSError as error:
            raise _sentence(directory / output.path, error) from error
        brought.append(directory.joinpath(*parts))
    return brought


def extend(client: Session, output: Output, directory: Path) -> Path:
    """Fetch one output that only grows and is being read: new bytes are appended to the same file, which others may
    have open."""
    parts = safe_parts(output.path)
    try:
        with _opened_below(directory, parts[:-1]) as folder:
            _extend(client, output, folder, parts[-1])
    except OSError as error:
        raise _sentence(directory / output.path, error) from error
    return directory.joinpath(*parts)


def _extend(client: Session, output: Output, folder: int, name: str) -> None:
    file = os.open(name, PART, 0o644, dir_fd=folder)
    try:
        _lock(file, output.path)
        _Download(client, output, file, lambda size: None).finish()
    except _Damaged as error:
        raise errors.RunyardError(f"{output.path} arrived damaged", "runyard doctor") from error
    finally:
        os.close(file)


def make_directory(directory: Path) -> None:
    """Make a directory and its parents. In a git checkout the topmost new one gets a `.gitignore`: results are not part
    of the next snapshot of the code. An existing directory is not changed."""
    new = [place for place in (directory, *directory.parents) if not os.path.lexists(place)]
    directory.mkdir(parents=True, exist_ok=True)
    if new and find_checkout(new[-1].absolute().parent):
        with contextlib.suppress(FileExistsError), (new[-1] / ".gitignore").open("x", encoding="ascii") as file:
            file.write("*\n")


def safe_parts(path: str) -> list[str]:
    """The parts of a relative path without `..`; raises InvalidInput for any other path."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise errors.InvalidInput(f"the output {path!r} has an unsafe path and was not fetched")
    return parts


def _bring_one(client: Session, output: Output, parts: list[str], directory: Path, progress: Progress) -> None:
    with _opened_below(directory, parts[:-1]) as folder:
        if _has(folder, parts[-1], output):
            progress(output.size)
            return
        with _part_of(folder, parts[-1], output) as part:
            _Download(client, output, part.file, progress).finish()
            part.keep(output.mode & 0o777)


@contextlib.contextmanager
def _opened_below(directory: Path, parts: list[str]) -> Iterator[int]:
    """The folder at `parts` below `directory`, created if missing."""
    make_directory(directory)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            deeper = os.open(part, DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


def _has(folder: int, name: str, output: Output) -> bool:
    """Whether the same file exists already."""
    try:
        existing = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(existing, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size != output.size:
            return False
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == output.digest


class _Part:
    """A partial download. It is kept when the transfer is interrupted, and the next one continues it."""

    def __init__(self, folder: int, name: str, digest: str) -> None:
        self._folder, self._name = folder, name
        self._temporary = f".{name[:180]}.{digest.removeprefix('sha256:')[:16]}.part"
        self.file = self._open()

    def keep(self, mode: int) -> None:
        os.fchmod(self.file, mode or 0o644)
        os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)

    def _open(self) -> int:
        file = os.open(self._temporary, PART, 0o600, dir_fd=self._folder)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return file
        os.close(file)  # not made by us
        self.drop()
        return os.open(self._temporary, PART | os.O_EXCL, 0o600, dir_fd=self._folder)


@contextlib.contextmanager
def _part_of(folder: int, name: str, output: Output) -> Iterator[_Part]:
    part = _Part(folder, name, output.digest)
    try:
        _lock(part.file, output.path)
        yield part
    except _Damaged as error:
        part.drop()
        raise errors.RunyardError(f"{output.path} arrived damaged and was not kept", "runyard doctor") from error
    except OSError:
        if not os.fstat(part.file).st_size:  # nothing to go on with
            part.drop()
        raise
    finally:
        os.close(part.file)


def _lock(file: int, path: str) -> None:
    """Two writers would damage the file. On a file system without locks a single writer is assumed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise errors.Conflict(f"{path} is being fetched by another process", "wait for it") from None
    except OSError:
        pass


class _Damaged(Exception):
    """The bytes are not those of the digest."""


class _Download:
    def __init__(self, client: Session, output: Output, file: int, progress: Progress) -> None:
        self._client, self._output, self._file, self._progress = client, output, file, progress
        self._patience = Patience()
        self._seen, self._held = hashlib.sha256(), 0

    def finish(self) -> None:
        """The earlier part may be damaged, as after a power failure: then the whole file is fetched again."""
        self._take_up()
        resumed = self._held > 0
        if not self._bring() and (not resumed or not self._bring_anew()):
            raise _Damaged

    def _bring_anew(self) -> bool:
        self._begin()
        return self._bring()

    def _bring(self) -> bool:
        """As long as data arrives, a lost connection is only an interruption."""
        while self._held < self._output.size:
            before = self._held
            try:
                self._receive()
                break
            except errors.YardUnreachable as error:
                if self._held > before:
                    self._patience.met()
                self._patience.endure(error)
        return f"sha256:{self._seen.hexdigest()}" == self._output.digest

    def _receive(self) -> None:
        asked = {"Range": f"bytes={self._held}-", "If-Range": f'"{self._output.digest}"'} if self._held else {}
        with self._client.open("GET", f"/blobs/{self._output.digest}", headers=asked) as stream:
            if self._held and stream.status != PARTIAL:
                self._begin()
            for chunk in stream:
                _write_all(self._file, chunk)
                self._count(chunk)

    def _take_up(self) -> None:
        """Read the earlier part."""
        if os.fstat(self._file).st_size > self._output.size:
            self._begin()
        while chunk := os.read(self._file, BLOCK):
            self._count(chunk)

    def _begin(self) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._progress(-self._held)
        self._seen, self._held = hashlib.sha256(), 0

    def _count(self, chunk: bytes) -> None:
        self._seen.update(chunk)
        self._held += len(chunk)
        self._progress(len(chunk))


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sentence(path: Path, error: OSError) -> errors.RunyardError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.DiskFull(f"no space is left to write {path}", "make room and fetch again: what is there is kept")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        return errors.Conflict(f"a symbolic link or a file is in the way of {path}", "fetch into an empty directory")
    if error.errno == errno.EISDIR:
        return errors.Conflict(f"a directory is in the way of {path}", "fetch into an empty directory")
    return errors.RunyardError(f"{path} could not be written: {error.strerror}", "check the directory's permissions")
