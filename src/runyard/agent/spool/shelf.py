"""The state beside a bundle: NAME.state/ with state.json, log and outputs/.

The owner of the drop box can replace it by anything. So it is opened without following links, must belong to us and
contain our key, and everything is written relative to the opened directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from runyard import errors
from runyard.agent.spool.looking import DIRECTORY
from runyard.agent.spool.notes import Note
from runyard.model import bundle as names
from runyard.model import paths

KEY = ".key"
PART = ".outputs.part"
FIX = "delete it, or submit the bundle under another name"
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotOurs(Exception):
    """Another user created the directory that the state would be written to."""


class Shelf:
    """An open state directory; see `opened`. All users of the drop box may read it."""

    def __init__(self, folder: int) -> None:
        self._folder = folder

    def write_state(self, state: dict[str, Any]) -> None:
        """Atomically: a reader sees the old state or the new one."""
        self._write(f".{names.STATE_FILE}", json.dumps(state, indent=2).encode() + b"\n")
        os.replace(f".{names.STATE_FILE}", names.STATE_FILE, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def log_size(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return os.stat(names.LOG, dir_fd=self._folder, follow_symlinks=False).st_size
        return 0

    def add_to_log(self, data: bytes) -> None:
        with _opened(names.LOG, _WRITE | os.O_APPEND, self._folder) as file:
            os.fchmod(file, 0o644)
            _write_all(file, data)

    def has_outputs(self) -> bool:
        return names.OUTPUTS in os.listdir(self._folder)

    @contextlib.contextmanager
    def outputs(self) -> Iterator[Outputs]:
        """They appear together, by one rename, at the end."""
        _make(PART, self._folder)
        with _opened(PART, DIRECTORY, self._folder) as part:
            yield Outputs(part)
        os.rename(PART, names.OUTPUTS, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _write(self, name: str, data: bytes) -> None:
        with _opened(name, _WRITE | os.O_TRUNC, self._folder) as file:
            os.fchmod(file, 0o644)
            _write_all(file, data)


class Outputs:
    """Outputs being downloaded. Existing files, as after a restart, are not downloaded again."""

    def __init__(self, folder: int) -> None:
        self._folder = folder

    def has(self, path: str, digest: str) -> bool:
        with self._above(path) as (folder, name):
            try:
                with _opened(name, _READ, folder) as file, open(file, "rb", closefd=False) as reader:
                    return f"sha256:{hashlib.file_digest(reader, 'sha256').hexdigest()}" == digest
            except FileNotFoundError:
                return False

    def write(self, path: str, digest: str, chunks: Iterable[bytes], executable: bool) -> None:
        seen = hashlib.sha256()
        with self._above(path) as (folder, name), _opened(name, _WRITE | os.O_TRUNC, folder) as file:
            os.fchmod(file, 0o755 if executable else 0o644)
            for chunk in chunks:
                seen.update(chunk)
                _write_all(file, chunk)
        if f"sha256:{seen.hexdigest()}" != digest:
            raise errors.YardUnreachable(f"{path} arrived damaged", "it is downloaded again")

    @contextlib.contextmanager
    def _above(self, path: str) -> Iterator[tuple[int, str]]:
        *above, name = paths.relative(path, "outputs").split("/")
        with contextlib.ExitStack() as stack:
            folder = self._folder
            for part in above:
                _make(part, folder)
                folder = stack.enter_context(_opened(part, DIRECTORY, folder))
            yield folder, name


@contextlib.contextmanager
def opened(box: int, note: Note) -> Iterator[Shelf]:
    """The state directory of this bundle in the open drop box, created if missing; raises NotOurs."""
    name = f"{note.name}{names.STATE}"
    _claim(box, name, note.key)
    try:
        folder = os.open(name, DIRECTORY, dir_fd=box)
    except OSError as error:
        raise NotOurs(f"{name} in the drop box is not a directory: {error.strerror}; {FIX}") from None
    try:
        _check(folder, name, note.key)
        yield Shelf(folder)
    finally:
        os.close(folder)


def remove(box: int, note: Note) -> None:
    """With its contents, if it is ours; and the cancel request: the next bundle of that name is another run."""
    with contextlib.suppress(NotOurs), opened(box, note):
        shutil.rmtree(f"{note.name}{names.STATE}", dir_fd=box)
    if note.cancelled:
        with contextlib.suppress(OSError):  # with the sticky bit, we may not delete files of others
            os.unlink(f"{note.name}{names.CANCEL}", dir_fd=box)


def _claim(box: int, name: str, key: str) -> None:
    """Created under another name and renamed, so that it is never seen without its key. The first agent wins."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(name, dir_fd=box, follow_symlinks=False)
        return
    temporary = f".{key}.state"
    _make(temporary, box)
    with _opened(temporary, DIRECTORY, box) as folder:
        Shelf(folder)._write(KEY, key.encode())
    try:
        os.rename(temporary, name, src_dir_fd=box, dst_dir_fd=box)
    except OSError:
        shutil.rmtree(temporary, dir_fd=box)


def _check(folder: int, name: str, key: str) -> None:
    _check_owner(folder, name)
    try:
        with _opened(KEY, _READ, folder) as file:
            found = os.read(file, 100)
    except OSError:
        found = b""
    if found != key.encode():
        raise NotOurs(f"{name} in the drop box belongs to another agent or another bundle; {FIX}")


def _check_owner(folder: int, name: str) -> None:
    if os.fstat(folder).st_uid != os.geteuid():
        raise NotOurs(f"{name} in the drop box was created by another user; {FIX}")


def _make(name: str, folder: int) -> None:
    """In a drop box with the setgid bit, everything has its group."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    with _opened(name, DIRECTORY, folder) as made:
        _check_owner(made, name)
        os.fchmod(made, 0o755 | (os.fstat(made).st_mode & stat.S_ISGID))


@contextlib.contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    file = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
