"""The scalars in one record of an event file.

TensorFlow 1 and PyTorch write `simple_value`; TensorFlow 2 writes a tensor without dimensions, its number packed in
`tensor_content` or listed in the field of its type. What is no single number (pictures, histograms, texts) is passed
over.
"""

import struct
from typing import Dict, Optional, Tuple

from . import wire
from .points import MetricPoint, Number

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5  # of an event
_VALUE = 1  # of a summary
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8  # of a value
_TYPE, _SHAPE, _CONTENT = 1, 2, 4  # of a tensor
_DIMENSION, _UNKNOWN_RANK = 2, 3  # of a shape
_HALF, _BFLOAT = 19, 14

# By the number of the type: how it is packed in tensor_content, and the field that lists values otherwise.
_TYPES: Dict[int, Tuple[str, int]] = {
    1: ("<f", 5), 2: ("<d", 6), 3: ("<i", 7), 4: ("<B", 7), 5: ("<h", 7), 6: ("<b", 7), 9: ("<q", 10), 10: ("<?", 11),
    17: ("<H", 7), _HALF: ("<e", 13), 22: ("<I", 16), 23: ("<Q", 17), _BFLOAT: ("<H", 13),
}  # fmt: skip


def read(data: bytes, at: int, end: int) -> Optional[MetricPoint]:
    """None when there is no scalar in it. Raises wire.Damaged, IndexError or struct.error for what is no event."""
    moment, step, values = None, 0, None
    for number, kind, begin, stop in wire.fields(data, at, end):
        if number == _SUMMARY and kind == wire.BYTES:
            values = _of_summary(data, begin, stop)
        elif number == _WALL_TIME and kind == wire.FIXED64:
            moment = wire.double(data, begin)
        elif number == _STEP and kind == wire.VARINT:
            step = wire.signed(wire.varint(data, begin)[0])
    return MetricPoint(values, step, moment) if values else None


def _of_summary(data: bytes, at: int, end: int) -> Dict[str, Number]:
    values: Dict[str, Number] = {}
    for number, kind, begin, stop in wire.fields(data, at, end):
        if number == _VALUE and kind == wire.BYTES:
            name, value = _of_value(data, begin, stop)
            if name and value is not None:
                values[name] = value
    return values


def _of_value(data: bytes, at: int, end: int) -> Tuple[str, Optional[Number]]:
    name, value = "", None  # type: str, Optional[Number]
    for number, kind, begin, stop in wire.fields(data, at, end):
        if number == _TAG and kind == wire.BYTES:
            name = data[begin:stop].decode("utf-8", "replace")
        elif number == _SIMPLE_VALUE and kind == wire.FIXED32:
            value = wire.single(data, begin)
        elif number == _TENSOR and kind == wire.BYTES:
            value = _of_tensor(data, begin, stop)
    return name, value


def _of_tensor(data: bytes, at: int, end: int) -> Optional[Number]:
    found = {}  # type: Dict[int, Tuple[int, int, int]]
    for number, kind, begin, stop in wire.fields(data, at, end):
        found[number] = (kind, begin, stop)
    kind, begin, _ = found.get(_TYPE, (wire.BYTES, 0, 0))
    packing, listed = _TYPES.get(wire.varint(data, begin)[0] if kind == wire.VARINT else 0, ("", 0))
    if not packing or not _is_scalar(data, found.get(_SHAPE)):
        return None
    is_bfloat = (packing, listed) == _TYPES[_BFLOAT]
    if _CONTENT in found:
        _, begin, stop = found[_CONTENT]
        bits = data[begin:stop]
        return _unpacked("<f", b"\0\0" + bits) if is_bfloat else _unpacked(packing, bits)
    return _listed(data, packing, is_bfloat, found[listed]) if listed in found else 0  # a zero may be left out


def _is_scalar(data: bytes, shape: Optional[Tuple[int, int, int]]) -> bool:
    if shape is None:
        return True
    _, begin, stop = shape
    return not any(number in (_DIMENSION, _UNKNOWN_RANK) for number, _, _, _ in wire.fields(data, begin, stop))


def _listed(data: bytes, packing: str, is_bfloat: bool, field: Tuple[int, int, int]) -> Optional[Number]:
    """One number, as it is or as a list of one. Halves are whole numbers with their bits."""
    _, begin, stop = field
    if packing == "<d" or packing == "<f":
        return _unpacked(packing, data[begin:stop])
    whole = wire.varint(data, begin)[0] if begin < stop else 0
    if packing == "<e":
        return _unpacked("<e", struct.pack("<H", whole & 0xFFFF))
    if is_bfloat:
        return _unpacked("<f", struct.pack("<I", (whole & 0xFFFF) << 16))
    return wire.signed(whole) if packing in "<i<h<b<q" else whole


def _unpacked(packing: str, bits: bytes) -> Optional[Number]:
    if len(bits) != struct.calcsize(packing):
        return None
    value = struct.unpack(packing, bits)[0]
    return int(value) if isinstance(value, bool) else value
