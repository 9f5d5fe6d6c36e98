"""Incoming bytes of a blob store: collected in a local file, and stored when their digest is known."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from runyard import errors

KEPT_S = 7 * 86400.0  # uploads that have not grown for so long are deleted


class BlobWriter:
    def __init__(self, incoming: Path, keep: Callable[[Path, str], None], digest: str | None = None) -> None:
        """`digest` is the expected digest, if known. `keep` stores the file; if it leaves the file, that is
        deleted."""
        self._keep, self._digest = keep, digest
        self.arriving: Callable[[str], None] = lambda _: None  # called with the digest, right before it is stored
        self._file = tempfile.NamedTemporaryFile(dir=incoming, delete=False)  # noqa: SIM115 - commit or discard closes it
        self._seen = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._seen.update(data)
        self._file.write(data)

    def write_all(self, chunks: Iterable[bytes]) -> str:
        """Write and commit; returns the digest."""
        try:
            for chunk in chunks:
                self.write(chunk)
            return self.commit()
        finally:
            self.discard()

    def commit(self) -> str:
        found = f"sha256:{self._seen.hexdigest()}"
        try:
            check_found(found, self._digest)
            self._file.flush()
            os.fsync(self._file.fileno())
            self.arriving(found)
            self._keep(Path(self._file.name), found)
        finally:
            self.discard()
        return found

    def discard(self) -> None:
        """Nothing is left behind; without effect after a commit."""
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file.name)


def check_found(found: str, promised: str | None) -> None:
    if promised not in (None, found):
        raise errors.InvalidInput(f"the bytes have the digest {found}, not {promised}")


def prepare_incoming(directory: Path) -> None:
    """Create it, and delete old files of crashes and abandoned uploads."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = time.time() - KEPT_S
    for path in directory.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
