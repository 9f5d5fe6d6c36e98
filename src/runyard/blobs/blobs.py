"""Files named by what is in them, see `runyard.model.digest`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from runyard import errors
from runyard.model.digest import check_digest

CHUNK = 1 << 20


class Blobs:
    """A file appears under its digest complete and checked, or not at all."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._incoming = root / "incoming"
        self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, digest: str) -> Path:
        name = check_digest(digest).removeprefix("sha256:")
        return self._root / name[:2] / name[2:]

    def has(self, digest: str) -> bool:
        return self.path(digest).is_file()

    def open(self, digest: str) -> BinaryIO:
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise errors.NotFound(f"there is no blob {digest}") from None

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes, piece by piece; raises NotFound."""
        with self.open(digest) as file:
            yield from iter(lambda: file.read(CHUNK), b"")

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        """Store what the chunks hold. A wrong digest leaves no trace."""
        _write_all(self.writer(digest), chunks)

    def add(self, chunks: Iterable[bytes]) -> str:
        """Store what the chunks hold, whatever it is; returns its digest."""
        return _write_all(BlobWriter(self.path, self._incoming), chunks)

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        """Take a local file whose digest was just computed: by hard link where that is allowed and works."""
        target = self.path(digest)
        if target.exists():
            return
        target.parent.mkdir(exist_ok=True, mode=0o700)
        if link:
            with contextlib.suppress(OSError):
                os.link(path, target)
                # One file with two names: whoever edits it in place would change what the digest promises.
                target.chmod(target.stat().st_mode & ~0o222)
                return
        with path.open("rb") as source:
            self.put(digest, iter(lambda: source.read(CHUNK), b""))

    def writer(self, digest: str) -> BlobWriter:
        """For bytes that arrive piece by piece: write(), then commit() or discard()."""
        return BlobWriter(self.path, self._incoming, check_digest(digest))


class BlobWriter:
    def __init__(self, place: Callable[[str], Path], incoming: Path, digest: str | None = None) -> None:
        """`digest` is what the bytes must have, where that is known before."""
        self._place, self._digest = place, digest
        self._file = tempfile.NamedTemporaryFile(dir=incoming, delete=False)  # noqa: SIM115 - commit or discard closes it
        self._seen = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._seen.update(data)
        self._file.write(data)

    def commit(self) -> str:
        found = f"sha256:{self._seen.hexdigest()}"
        if self._digest not in (None, found):
            self.discard()
            raise errors.InvalidInput(f"the bytes have the digest {found}, not {self._digest}")
        self._file.flush()
        os.fsync(self._file.fileno())
        target = self._place(found)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        os.replace(self._file.name, target)
        self._file.close()
        return found

    def discard(self) -> None:
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file.name)


def _write_all(writer: BlobWriter, chunks: Iterable[bytes]) -> str:
    try:
        for chunk in chunks:
            writer.write(chunk)
    except BaseException:
        writer.discard()
        raise
    return writer.commit()
