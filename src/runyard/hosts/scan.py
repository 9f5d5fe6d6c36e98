"""Look through many attempt directories in one pass: the far half of `Host.scan`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from runyard.hosts.base import CHUNK, SCAN_BYTES, Known, Seen


def scan(root: str, known: Iterable[Known]) -> list[Seen]:
    budget = SCAN_BYTES
    found = []
    for attempt in known:
        seen = _look(os.path.join(root, attempt.directory), attempt, budget)
        if seen is not None:
            budget -= sum(map(len, seen.data.values()))
            found.append(seen)
    return found


def _look(path: str, known: Known, budget: int) -> Seen | None:
    # The status first: the lengths it names are final, so bytes read afterwards can only be complete.
    version, status = _read_status(f"{path}/status.json", known.version)
    started = known.started or status is not None or os.path.isdir(f"{path}/started")
    sizes: dict[str, int] = {}
    data: dict[str, bytes] = {}
    for name, offset in known.offsets.items():
        size = _size(f"{path}/{name}")
        if size is None:
            continue
        sizes[name] = size
        if size > offset and budget > 0:
            data[name] = _read(f"{path}/{name}", offset, min(CHUNK, budget, size - offset))
            budget -= len(data[name])
    if started == known.started and version == known.version and not data:
        return None
    return Seen(directory=known.directory, started=started, version=version, status=status, data=data, sizes=sizes)


def _read_status(path: str, version: str) -> tuple[str, dict[str, Any] | None]:
    """The status and its version; a file that is missing or half there is no news and leaves the version as it was."""
    try:
        stat = os.stat(path)
        newest = f"{stat.st_ino}.{stat.st_mtime_ns}.{stat.st_size}"
        if newest == version:
            return version, None
        with open(path, "rb") as file:
            status = json.loads(file.read())
    except (OSError, ValueError):
        return version, None
    return (newest, status) if isinstance(status, dict) else (version, None)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _read(path: str, offset: int, length: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, length, offset)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
