"""Logs and other files of attempts, as far as they have been relayed.

A file grows only at its end, and a writer names the offset: relaying the same bytes twice changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from runyard import errors
from runyard.model.wire import RELAYED_FILES, AttemptKey


class AttemptFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, key: AttemptKey, file: str) -> Path:
        if file not in RELAYED_FILES:
            raise errors.InvalidInput(
                f"{file[:80]!r} is not a file that is relayed", f"known: {', '.join(RELAYED_FILES)}"
            )
        return self._root / f"{key.run // 1000:05d}" / str(key.run) / f"a{key.attempt}-{file}"

    def append(self, key: AttemptKey, file: str, offset: int, data: bytes) -> int:
        """Add what is new in `data`; returns the size held, which is where the sender goes on from."""
        path = self.path(key, file)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            return _grow(handle, offset, data)
        except OSError as error:
            raise errors.DiskFull(f"the log of attempt {key} cannot be written: {error.strerror}") from None
        finally:
            os.close(handle)

    def size(self, key: AttemptKey, file: str) -> int:
        try:
            return os.stat(self.path(key, file)).st_size
        except FileNotFoundError:
            return 0

    def read(self, key: AttemptKey, file: str, offset: int, limit: int) -> bytes:
        try:
            with self.path(key, file).open("rb") as source:
                source.seek(offset)
                return source.read(limit)
        except FileNotFoundError:
            return b""


def _grow(handle: int, offset: int, data: bytes) -> int:
    held = os.fstat(handle).st_size
    if offset > held or offset + len(data) <= held:
        return held
    rest = memoryview(data)[held - offset :]
    while rest:
        written = os.pwrite(handle, rest, held)
        held += written
        rest = rest[written:]
    return held
