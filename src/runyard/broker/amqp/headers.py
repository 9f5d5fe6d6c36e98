"""Headers of messages of other programs.

A value that the library cannot decode stays first in its buffer, and nothing after it is ever read: one such header
would block a yard's connection to its broker for ever. So values on which it may fail are read as texts.
"""

from __future__ import annotations

import struct
from typing import Any

from pika import data

# A time in milliseconds is one after the year 9999 to Python, and a large fraction is a number that no header holds.
_AS_TEXT = {b"T": ">Q", b"f": ">f", b"d": ">d"}
_library_reads = data.decode_value


def read_value(encoded: bytes, offset: int) -> tuple[Any, int]:
    """The value that begins there, and where it ends. Every one of them can be written into a header again."""
    kind = encoded[offset : offset + 1]
    if kind in _AS_TEXT:
        (number,) = struct.unpack_from(_AS_TEXT[kind], encoded, offset + 1)
        return str(number), offset + 1 + struct.calcsize(_AS_TEXT[kind])
    try:
        return _library_reads(encoded, offset)
    except RecursionError:  # a list or a table, which say how long they are
        (length,) = struct.unpack_from(">I", encoded, offset + 1)
        return "nested too deeply", offset + 5 + length


data.decode_value = read_value
