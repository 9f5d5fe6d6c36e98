"""Scan many attempt directories in one pass."""

import json
import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import files

Json = Dict[str, Any]
Found = Tuple[Json, List[bytes]]  # the state of an attempt, and its new bytes in the order of `data`


def scan(root: bytes, known: Iterable[List[Any]], chunk: int, budget: int) -> Iterator[Found]:
    """Known: [directory, {file: offset}, version of the status, started]. Attempts without news are left out.

    `chunk` is the maximum for one file, `budget` the maximum for all together.
    """
    for name, offsets, version, started in known:
        found, data = _look(os.path.join(root, files.encode(name)), offsets, version, started, chunk, budget)
        budget -= sum(map(len, data))
        if found["started"] != started or found["version"] != version or data:
            found["directory"] = name
            yield found, data


def _look(path: bytes, offsets: Dict[str, int], version: str, started: bool, chunk: int, budget: int) -> Found:
    names = _names(path)
    # The status first: the lengths it names are final, so bytes read afterwards can only be complete.
    newest, status = _read_status(path + b"/status.json", version) if b"status.json" in names else (version, None)
    sizes = {}  # type: Dict[str, int]
    data = {}  # type: Dict[str, bytes]
    for name, offset in offsets.items():
        if files.encode(name) not in names:
            continue
        # A file that a status speaks of is opened: its length may be known from before otherwise, on NFS.
        size, piece = _read(path + b"/" + files.encode(name), offset, min(chunk, budget), status is not None)
        sizes[name] = size
        if piece:
            data[name] = piece
            budget -= len(piece)
    begun = started or status is not None or b"started" in names
    found = {"started": begun, "version": newest, "status": status, "sizes": sizes, "data": list(data)}
    return found, list(data.values())


def _names(path: bytes) -> List[bytes]:
    """Opening a directory makes an NFS client ask the server for its contents: otherwise they may be a minute old."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def _read_status(path: bytes, version: str) -> Tuple[str, Optional[Json]]:
    """The status and its version; an incomplete file is no change and keeps the old version."""
    try:
        found = os.stat(path)
        newest = "%d.%d.%d" % (found.st_ino, found.st_mtime_ns, found.st_size)
        if newest == version:
            return version, None
        status = json.loads(files.fetch(path).decode())
    except (OSError, ValueError):
        return version, None
    return (newest, status) if isinstance(status, dict) else (version, None)


def _read(path: bytes, offset: int, most: int, fresh: bool) -> Tuple[int, bytes]:
    """Size, and the bytes beyond the offset."""
    size = files.size(path) or 0
    if (size <= offset and not fresh) or most <= 0:
        return size, b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return size, b""
    try:
        size = os.fstat(descriptor).st_size
        return size, os.pread(descriptor, min(most, size - offset), offset) if size > offset else b""
    except OSError:
        return size, b""
    finally:
        os.close(descriptor)
