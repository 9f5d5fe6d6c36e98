"""TensorBoard's event files, written by hand: records with checksums, around three messages of Protocol Buffers.

https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from ictrain.protobuf import double, field

_POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (_POLYNOMIAL if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """Rotated and shifted, so that a checksum of data that holds checksums is still a good one."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


class EventFile:
    """The scalars of one directory; every record is on its way to disk when `scalars` returns."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.0.v2"
        self._file = (directory / name).open("ab")
        self._write(_event(field(3, "brain.Event:2")))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        summary = b"".join(field(1, _scalar(tag, value)) for tag, value in values.items())
        self._write(_event(field(2, step) + field(5, summary)))

    def close(self) -> None:
        self._file.close()

    def _write(self, event: bytes) -> None:
        self._file.write(record(event))
        self._file.flush()


def _event(fields: bytes) -> bytes:
    return double(1, time.time()) + fields


def _scalar(tag: str, value: float) -> bytes:
    """A value as TensorFlow 2 writes it: a tensor of no dimensions, for the plug-in that draws scalars."""
    tensor = field(1, 1) + field(2, b"") + field(5, struct.pack("<f", value))
    return field(1, tag) + field(8, tensor) + field(9, field(1, field(1, "scalars")))
