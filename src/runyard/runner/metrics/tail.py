"""A file that grows, read on from where we were; one that was written anew is read from its beginning."""

import os
from typing import List, Optional

from . import folder

CHUNK = 1 << 20

_BEFORE = 64  # bytes by which we know that it is still the file that we read from


class Tail:
    def __init__(self, path: bytes, position: int = 0, before: bytes = b"") -> None:
        """`before`: the bytes that lie before the position."""
        self._path = path
        self._before = before
        self.position = position
        self.size = 0  # when we last looked
        self.was_rewritten = False  # since we looked the time before
        self._data = b""

    @property
    def is_at_end(self) -> bool:
        return self.position >= self.size

    def read(self, most: int = CHUNK) -> bytes:
        """What comes next. Raises OSError."""
        descriptor = folder.open_file(self._path)
        try:
            self.size = os.fstat(descriptor).st_size
            self.was_rewritten = self._is_another(descriptor)
            if self.was_rewritten:
                self.position, self._before = 0, b""
            self._data = os.pread(descriptor, most, self.position)
            return self._data
        finally:
            os.close(descriptor)

    def advance(self, count: int) -> None:
        """The first so many bytes of what was read are done with; more than that are passed over."""
        kept = self._data[:count]
        self._before = (self._before + kept)[-_BEFORE:] if count <= len(self._data) else b""
        self._data = self._data[count:]
        self.position += count

    def lines(self, is_last: bool, most: int = CHUNK) -> Optional[List[bytes]]:
        """Whole lines, and what is left after the last one when nothing more will come. None: a line without an end."""
        data = self.read(most)
        end = data.rfind(b"\n") + 1
        if is_last and len(data) < most:
            end = len(data)
        if not end and len(data) == most:
            return None
        self.advance(end)
        return data[:end].splitlines()

    def _is_another(self, descriptor: int) -> bool:
        if self.size < self.position:
            return True
        length = len(self._before)
        return os.pread(descriptor, length, self.position - length) != self._before
