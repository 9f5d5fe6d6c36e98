"""What the user's process prints: straight into append-only files, no pipe that could break or fill.

| files that the user named         | the process writes to            | what is copied                        |
|-----------------------------------|----------------------------------|---------------------------------------|
| none                              | log                              |                                       |
| none, streams apart               | stdout, stderr                   | both into the log                     |
| files of the run's own            | those files                      | those files into the log              |
| files that others write to        | log                              | whole lines of it into the file       |
| files that others write to, apart | stdout, stderr                   | the same, and both into the log       |
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from typing import Dict, Iterator, List, Optional, Tuple

from . import json_files, spec

LOG, STDOUT, STDERR = "log", "stdout", "stderr"
FILES = (LOG, STDOUT, STDERR, "metrics.jsonl", "usage.jsonl")

_CHUNK = 1 << 20
_AT_ONCE = 16  # chunks copied before the runner looks at its other duties
_LOCK_TRIES, _LOCK_PAUSE_S = 20, 0.005


class ProcessOutput:
    def __init__(self, wanted: spec.Spec) -> None:
        self._wanted = wanted
        self._log = _open_to_append(LOG)
        self._copies: List[Tuple[FileCopy, int]] = []
        together = wanted.stderr is None and (wanted.stdout is not None or not wanted.split_output)
        self.stdout = self._open(STDOUT, wanted.stdout)
        self.stderr = self.stdout if together else self._open(STDERR, wanted.stderr)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to copy."""
        return not self._copies

    def merge(self) -> bool:
        """Copies what is new, whole lines first. True when there is more to copy at once."""
        more = [stream.copy_to(target) for stream, target in self._copies]
        return any(more)

    def finish(self) -> None:
        """Copies the rest, when no process writes any more."""
        for stream, target in self._copies:
            stream.copy_all(target)

    def close(self) -> None:
        for descriptor in {self._log, self.stdout, self.stderr}.union(target for _, target in self._copies):
            os.close(descriptor)
        for stream, _ in self._copies:
            stream.close()

    def _open(self, name: str, path: Optional[bytes]) -> int:
        if path is not None and not self._wanted.shares_files:
            return self._open_own(path)
        source, descriptor = LOG, self._log
        if self._wanted.split_output:
            source, descriptor = name, _open_to_append(name)
            self._copies.append((FileCopy(name), self._log))
        if path is not None:
            self._copies.append((LineCopy(source), _open_named(path, 0)))
        return descriptor

    def _open_own(self, path: bytes) -> int:
        descriptor = _open_named(path, os.O_TRUNC if self._wanted.empties_files else 0)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):  # output to /dev/null cannot be copied
            self._copies.append((FileCopy(path, found.st_size), self._log))
        return descriptor


class FileCopy:
    """Follows one file into another."""

    def __init__(self, path: json_files.Path, begin: int = 0) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._copied = begin
        self._seen = begin  # the length of the file when we last looked

    def copy_to(self, target: int) -> bool:
        self._follow_back()
        for _ in range(_AT_ONCE):
            data = os.pread(self._file, _CHUNK, self._copied)
            whole = data if len(data) == _CHUNK else self._lines(data)
            self._append(target, whole)
            if len(data) < _CHUNK:
                return False
        return True

    def copy_all(self, target: int) -> None:
        self._follow_back()
        data = os.pread(self._file, _CHUNK, self._copied)
        while data:
            self._append(target, data)
            data = os.pread(self._file, _CHUNK, self._copied)

    def close(self) -> None:
        os.close(self._file)

    def _follow_back(self) -> None:
        """A file that got shorter was begun anew, as by `> /dev/stdout` in a shell."""
        if os.fstat(self._file).st_size < self._copied:
            self._copied = self._seen = 0

    def _lines(self, data: bytes) -> bytes:
        """Up to the last line end. A line that has not grown since the last time is taken as it is: a prompt, say."""
        length = self._copied + len(data)
        has_grown, self._seen = length != self._seen, length
        return data[: data.rfind(b"\n") + 1] if has_grown else data

    def _append(self, target: int, data: bytes) -> None:
        """Counts what was written also when the disk fills up in the middle."""
        while data:
            written = os.write(target, data)
            self._copied += written
            data = data[written:]


class LineCopy(FileCopy):
    """Follows one file into another that more than one runner writes to: by whole lines, and one at a time."""

    def copy_all(self, target: int) -> None:
        super().copy_all(target)
        if self._copied and os.pread(self._file, 1, self._copied - 1) != b"\n":
            os.write(target, b"\n")

    def _lines(self, data: bytes) -> bytes:
        return data[: data.rfind(b"\n") + 1]

    def _append(self, target: int, data: bytes) -> None:
        if data:
            with _alone(target):
                super()._append(target, data)


@contextlib.contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    """An NFS client appends to where it believes the end is; a lock makes it look. Where there is none we go on."""
    locked = any(_lock(descriptor) for _ in range(_LOCK_TRIES))
    try:
        yield
    finally:
        if locked:
            fcntl.lockf(descriptor, fcntl.LOCK_UN)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        time.sleep(_LOCK_PAUSE_S)
        return False


def sizes() -> Dict[str, int]:
    """The files that exist, with their lengths."""
    found = {}
    for name in FILES:
        try:
            found[name] = os.stat(name).st_size
        except OSError:
            continue
    return found


def _open_to_append(path: json_files.Path, further: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | further, 0o666)


def _open_named(path: bytes, further: int) -> int:
    try:
        return _open_to_append(path, further)
    except OSError as error:
        shown = path.decode("utf-8", "replace")
        reason = os.strerror(error.errno or 0).lower()
        if error.errno == errno.ENOENT:
            reason = "no such directory: %s; make it first" % os.path.dirname(shown)
        raise spec.BadSpec("cannot open the output file %s: %s" % (shown, reason)) from error
