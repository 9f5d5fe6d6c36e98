"""Cached digests of files, so that an unchanged folder only has to be scanned."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

RACY_NS = 2_000_000_000  # a file this young may change again without its times telling: file systems' clocks are coarse
KEPT_S = 30 * 86400

Identity = tuple[int, int, int, int]


def identity(status: os.stat_result) -> Identity:
    """A value that changes when a file's bytes do."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class StatCache:
    """Of one folder. Losing it, or not being able to write it, costs time and nothing else."""

    def __init__(self, directory: Path | None, root: Path) -> None:
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path = None if directory is None else directory / f"{name}.json"
        self._known: dict[str, list[Any]] = _read(self._path)
        self._seen: dict[str, list[Any]] = {}

    def get(self, path: str, status: os.stat_result) -> str | None:
        entry = self._known.get(path)
        if not isinstance(entry, list) or entry[:-1] != list(identity(status)):
            return None
        self._seen[path] = entry
        return str(entry[-1])

    def put(self, path: str, status: os.stat_result, digest: str, read_at_ns: int) -> None:
        """`read_at_ns`: when reading began, by the clock of this machine."""
        newest = max(status.st_mtime_ns, status.st_ctime_ns)
        if newest + RACY_NS < read_at_ns:
            self._seen[path] = [*identity(status), digest]

    def save(self) -> None:
        if self._path is not None and self._seen != self._known:
            _write(self._path, json.dumps(self._seen, separators=(",", ":")).encode())  # dump() writes value by value

    def last_tree(self) -> bytes:
        """The description of the folder as it was when it was read last; empty if unknown."""
        with contextlib.suppress(OSError):
            return self._tree_path.read_bytes() if self._tree_path else b""
        return b""

    def keep_tree(self, description: bytes) -> None:
        if self._tree_path is not None:
            _write(self._tree_path, description)

    @property
    def _tree_path(self) -> Path | None:
        return None if self._path is None else self._path.with_suffix(".tree")


def _write(path: Path, data: bytes) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, path)
        _forget_old(path.parent)


def _read(path: Path | None) -> dict[str, list[Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _forget_old(directory: Path) -> None:
    before = time.time() - KEPT_S
    for path in directory.iterdir():
        if path.stat().st_mtime < before:
            path.unlink()
