"""Protocol Buffers on the wire, as much as writing takes: a message is its fields, one after the other.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Mapping


def field(number: int, value: int | str | bytes) -> bytes:
    """An integer, or what has a length: a text, bytes, or another message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def mapping(number: int, items: Mapping[str, bytes]) -> bytes:
    """Messages by name."""
    return b"".join(field(number, field(1, name) + field(2, message)) for name, message in items.items())


def _varint(number: int) -> bytes:
    found, rest = bytearray(), number & 0xFFFF_FFFF_FFFF_FFFF  # negative ones count down from the top
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])
