"""TensorBoard event files: records with a length, a check of the length, the event, and a check of that.

A record that is not whole yet waits for the rest. One whose length does not fit its check is not read, nor what comes
after it: there is no way to tell where the next one begins.
"""

import functools
import struct
from typing import List, Optional, Tuple

from . import scalars, tail, wire
from .points import Points

_HEAD = struct.Struct("<QI")
_CHECK = 4  # bytes after the event
_LARGEST = 16 << 20  # of a record that is looked into; a larger one is a picture or a graph


class Events:
    def __init__(self, file: tail.Tail) -> None:
        self._file = file
        self._next = tail.CHUNK  # bytes to read
        self.more = False

    def read(self, is_last: bool) -> Points:
        data = self._file.read(self._next)
        points: Points = []
        at, length = 0, _record(data, 0)
        while length is not None and at + length <= len(data):
            _add(points, data, at, length)
            at += length
            length = _record(data, at)
        self._file.advance(at)
        self._look_ahead(at, length)
        return points

    def _look_ahead(self, done: int, length: Optional[int]) -> None:
        """A record that did not fit into what was read is read as a whole, or passed over when it is all there."""
        rest = self._file.size - self._file.position
        is_there = length is not None and length <= rest
        self._next = tail.CHUNK
        if is_there and length is not None and length > _LARGEST:
            self._file.advance(length)
        elif is_there and length is not None:
            self._next = max(tail.CHUNK, length)
        self.more = is_there or (done > 0 and length is None and rest >= _HEAD.size)


def _record(data: bytes, at: int) -> Optional[int]:
    """Its whole length; None where none begins."""
    if at + _HEAD.size > len(data):
        return None
    length, check = _HEAD.unpack_from(data, at)
    return length + _HEAD.size + _CHECK if _masked(data[at : at + 8]) == check else None


def _add(points: Points, data: bytes, at: int, length: int) -> None:
    try:
        point = scalars.read(data, at + _HEAD.size, at + length - _CHECK)
    except (wire.Damaged, IndexError, struct.error):
        return
    if point is not None:
        points.append(point)


def _masked(data: bytes) -> int:
    """CRC-32C, turned by 15 bits and moved, as the format wants it."""
    check, table = 0xFFFFFFFF, _table()
    for byte in data:
        check = table[(check ^ byte) & 0xFF] ^ (check >> 8)
    check ^= 0xFFFFFFFF
    return (((check >> 15) | (check << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@functools.lru_cache(maxsize=None)
def _table() -> Tuple[int, ...]:
    entries: List[int] = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        entries.append(byte)
    return tuple(entries)
