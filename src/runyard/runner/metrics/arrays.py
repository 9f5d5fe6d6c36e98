"""`.npz` files: arrays of one length are curves, single numbers are a summary. Anything else in one, such as the
weights of a model, makes it no file of metrics. It is read by hand: numpy is not here, and nothing is unpickled."""

import os
import re
import struct
import zipfile
import zlib
from typing import IO, Dict, List, Optional, Tuple

from . import folder
from .points import STEPS, MetricPoint, Number, Points, as_step

_MOST_ARRAYS = 200
_MOST_VALUES = 100000  # of one array
_LONGEST_HEADER = 4096
_END = struct.Struct("<4s6xH10s")  # of a zip file without a comment
_HEADER = re.compile(
    rb"\{'descr': *'([<>|=]?)([fiub])(\d)', *'fortran_order': *\w+, *'shape': *\((\d{0,9}),?\), *\} *\n?"
)
_CODES = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H",
          "u4": "I", "u8": "Q", "b1": "?"}  # fmt: skip
# What zipfile, zlib and struct raise of a file that is damaged, encrypted or packed in a way that they do not know.
_TROUBLE = (OSError, ValueError, RuntimeError, EOFError, NotImplementedError, struct.error, zlib.error,
            zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, IndexError)  # fmt: skip

Array = Tuple[bool, List[Number]]  # whether it has a dimension


def read(path: bytes, at: float) -> Points:
    """Nothing when it is no file of metrics; `at` is when it was written."""
    try:
        with os.fdopen(folder.open_file(path), "rb") as file:
            arrays = _arrays(zipfile.ZipFile(file)) if _is_small(file) else None
    except _TROUBLE:
        return []
    return _points(arrays, at) if arrays else []


def _is_small(file: IO[bytes]) -> bool:
    """By the record at its end, which is where numpy leaves it: to count them by opening it takes memory for each."""
    if file.seek(0, os.SEEK_END) < _END.size:
        return False
    file.seek(-_END.size, os.SEEK_END)
    signature, members, _ = _END.unpack(file.read())
    return bool(signature == b"PK\5\6" and members <= _MOST_ARRAYS)


def _arrays(archive: zipfile.ZipFile) -> Optional[Dict[str, Array]]:
    """None when one of them is not as it should be."""
    found: Dict[str, Array] = {}
    for member in archive.infolist():
        with archive.open(member) as file:
            array = _array(file)
        if array is None:
            return None
        found[member.filename[: -len(".npy")] if member.filename.endswith(".npy") else member.filename] = array
    lengths = {len(values) for is_curve, values in found.values() if is_curve}
    return found if len(lengths) <= 1 else None


def _array(file: IO[bytes]) -> Optional[Array]:
    header = _header(file)
    match = _HEADER.fullmatch(header) if header is not None else None
    if match is None:
        return None
    order, kind, width, length = (part.decode() for part in match.groups())
    code, count = _CODES.get(kind + width), int(length or 1)
    if code is None or count > _MOST_VALUES:
        return None
    packing = struct.Struct("%s%d%s" % (">" if order == ">" else "<", count, code))
    values = packing.unpack(file.read(packing.size))
    return bool(length), [int(value) if isinstance(value, bool) else value for value in values]


def _header(file: IO[bytes]) -> Optional[bytes]:
    start = file.read(8)
    if start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        return None
    (length,) = struct.unpack("<H", file.read(2)) if start[6] == 1 else struct.unpack("<I", file.read(4))
    return file.read(length) if length <= _LONGEST_HEADER else None


def _points(arrays: Dict[str, Array], at: float) -> Points:
    curves = {name: values for name, (is_curve, values) in arrays.items() if is_curve}
    single = {name: values[0] for name, (is_curve, values) in arrays.items() if not is_curve}
    steps = next((curves.pop(name) for name in STEPS if name in curves), None)
    length = max(map(len, curves.values()), default=0)
    points = [
        MetricPoint({name: values[row] for name, values in curves.items()}, as_step(steps[row] if steps else row), at)
        for row in range(length)
    ]
    return points + ([MetricPoint(single, None, at, is_summary=True)] if single else [])
