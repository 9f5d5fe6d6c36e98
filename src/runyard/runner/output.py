"""What the user's process prints: straight into append-only files, no pipe that could break or fill."""

import os
from typing import Dict, List

LOG, STDOUT, STDERR = "log", "stdout", "stderr"
FILES = (LOG, STDOUT, STDERR, "metrics.jsonl", "usage.jsonl")

_CHUNK = 1 << 20
_AT_ONCE = 16  # chunks copied before the runner looks at its other duties


class Output:
    """One file for both streams; or one each, of which `merge` makes the log."""

    def __init__(self, split: bool) -> None:
        self._log = _open_to_append(LOG)
        self.stdout = _open_to_append(STDOUT) if split else self._log
        self.stderr = _open_to_append(STDERR) if split else self._log
        self._streams: List[Stream] = [Stream(STDOUT), Stream(STDERR)] if split else []

    def merge(self) -> bool:
        """Copies what is new, whole lines first. True when there is more to copy at once."""
        more = [stream.copy_to(self._log) for stream in self._streams]
        return any(more)

    def finish(self) -> None:
        """Copies the rest, when nobody writes any more."""
        for stream in self._streams:
            stream.copy_all(self._log)

    def close(self) -> None:
        for descriptor in {self._log, self.stdout, self.stderr}:
            os.close(descriptor)


class Stream:
    """Follows one file into another."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._copied = 0
        self._seen = 0  # the length of the file when we last looked

    def copy_to(self, target: int) -> bool:
        for _ in range(_AT_ONCE):
            data = os.pread(self._file, _CHUNK, self._copied)
            whole = data if len(data) == _CHUNK else self._lines(data)
            self._append(target, whole)
            if len(data) < _CHUNK:
                return False
        return True

    def copy_all(self, target: int) -> None:
        data = os.pread(self._file, _CHUNK, self._copied)
        while data:
            self._append(target, data)
            data = os.pread(self._file, _CHUNK, self._copied)

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


def sizes() -> Dict[str, int]:
    """The files that exist, with their lengths."""
    found = {}
    for name in FILES:
        try:
            found[name] = os.stat(name).st_size
        except OSError:
            continue
    return found


def _open_to_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
