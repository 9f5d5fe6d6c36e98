"""Bring outputs to this machine: by digest, verified, whole or not at all, and never outside the target directory.

The paths come from a run, so they are not trusted: every directory on the way is opened without following symbolic
links, and files are made relative to the opened directory, so that nothing can be swapped underneath.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runyard import errors

if TYPE_CHECKING:
    from runyard.client.client import Client
    from runyard.client.run import Output

Progress = Callable[[int], None]
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
BLOCK = 1 << 20


def bring(client: Client, outputs: Iterable[Output], directory: Path, progress: Progress) -> list[Path]:
    """Bring every output below `directory`; `progress` is told the bytes that are done, skipped ones too."""
    brought = []
    for output in outputs:
        parts = safe_parts(output.path)
        try:
            _bring_one(client, output, parts, directory, progress)
        except OSError as error:
            raise _sentence(directory / output.path, error) from error
        brought.append(directory.joinpath(*parts))
    return brought


def safe_parts(path: str) -> list[str]:
    """The parts of a relative path that stays below where it starts; raises InvalidInput for any other."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise errors.InvalidInput(f"the output {path!r} has an unsafe path and was not fetched")
    return parts


def _bring_one(client: Client, output: Output, parts: list[str], directory: Path, progress: Progress) -> None:
    with _opened_below(directory, parts[:-1]) as folder:
        if _has(folder, parts[-1], output):
            progress(output.size)
            return
        with _replaced(folder, parts[-1], output.mode & 0o777) as file:
            _download(client, output, file, progress)


@contextlib.contextmanager
def _opened_below(directory: Path, parts: list[str]) -> Iterator[int]:
    """The folder at `parts` below `directory`, made where it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
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
    """Whether the very file is there already."""
    try:
        existing = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(existing, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size != output.size:
            return False
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == output.digest


@contextlib.contextmanager
def _replaced(folder: int, name: str, mode: int) -> Iterator[int]:
    """A new file that takes the place of `name` when the block ends well, and vanishes otherwise."""
    temporary = f".{name[:200]}.{os.getpid()}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    file = os.open(temporary, NEW_FILE, 0o600, dir_fd=folder)
    try:
        yield file
        os.fchmod(file, mode or 0o644)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(file)


def _download(client: Client, output: Output, file: int, progress: Progress) -> None:
    seen = hashlib.sha256()
    with client.open("GET", f"/blobs/{output.digest}") as stream:
        for chunk in stream:
            seen.update(chunk)
            _write_all(file, chunk)
            progress(len(chunk))
    if f"sha256:{seen.hexdigest()}" != output.digest:
        raise errors.RunyardError(f"{output.path} arrived damaged and was not kept", "runyard doctor")


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sentence(path: Path, error: OSError) -> errors.RunyardError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.DiskFull(f"no space is left to write {path}", "make room and fetch again: what is there is kept")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return errors.Conflict(f"a symbolic link or a file is in the way of {path}", "fetch into an empty directory")
    if error.errno == errno.EISDIR:
        return errors.Conflict(f"a directory is in the way of {path}", "fetch into an empty directory")
    return errors.RunyardError(f"{path} could not be written: {error.strerror}", "check the directory's permissions")
