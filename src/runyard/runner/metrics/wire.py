"""Protocol buffers, as much of them as event files need: the fields of a message, without a schema."""

import struct
from typing import Iterator, Tuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")

Field = Tuple[int, int, int, int]  # number, type, and where its value begins and ends


class Damaged(Exception):
    """This is no message."""


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Raises Damaged, or IndexError where it breaks off."""
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        if kind == BYTES:
            length, at = varint(data, at)
            stop = at + length
        elif kind == VARINT:
            _, stop = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            stop = at + (8 if kind == FIXED64 else 4)
        else:
            raise Damaged
        if stop > end:
            raise Damaged
        yield key >> 3, kind, at, stop
        at = stop


def varint(data: bytes, at: int) -> Tuple[int, int]:
    """The number, and where it ends."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise Damaged


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def double(data: bytes, at: int) -> float:
    return float(_DOUBLE.unpack_from(data, at)[0])


def single(data: bytes, at: int) -> float:
    return float(_FLOAT.unpack_from(data, at)[0])
