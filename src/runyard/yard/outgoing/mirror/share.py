"""A directory on any file server: uses no links and no mode bits, and may become unavailable at any time."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MARKER = ".runyard.json"  # says which yard was here first
INCOMING = ".incoming"  # what is not whole yet; a folder of the project, so that a rename stays on one file system
OF_ONE_FILE = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})  # the others are of the share


class Away(Exception):
    """The share cannot be used now. The text is for users."""


class Share:
    def __init__(self, root: str, yard: str) -> None:
        self.root, self._yard = Path(root), yard

    def check(self) -> str:
        """Raises Away. Returns a suffix for the names of runs: empty, unless another yard used the share first, whose
        runs have the same numbers. The root itself is never created: if it is missing, the share is not mounted."""
        if not self.root.is_dir():
            raise Away(f"{self.root} is not there; mount the share, or make the directory")
        marker = self.root / MARKER
        if not marker.exists():
            write(self.root / f"{MARKER}.{self._yard}.tmp", [json.dumps({"yard": self._yard}).encode()])
            os.replace(self.root / f"{MARKER}.{self._yard}.tmp", marker)
        first = read_json(marker).get("yard", "")
        return "" if first == self._yard else f"@{self._yard}"

    def folder(self, *parts: str) -> Path:
        """Created if missing, but nothing above the root."""
        path = self.root
        for part in parts:
            path = path / part
            with contextlib.suppress(FileExistsError):
                path.mkdir()
        return path


def read_json(path: Path) -> dict[str, Any]:
    """Empty if there is no readable one."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, chunks: Iterable[bytes]) -> str:
    """Returns the digest of what was written. It is on disk when this returns."""
    seen = hashlib.sha256()
    with path.open("wb") as file:
        for chunk in chunks:
            seen.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return f"sha256:{seen.hexdigest()}"


def holds(path: Path, size: int, digest: str) -> bool:
    """Whether the same file exists."""
    try:
        if path.stat().st_size != size:
            return False
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
    except FileNotFoundError:
        return False


def extend(path: Path, offset: int, data: bytes) -> None:
    """Write bytes at their offset: writing them twice changes nothing."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            written = os.pwrite(handle, view, offset)
            offset, view = offset + written, view[written:]
    finally:
        os.close(handle)


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)
