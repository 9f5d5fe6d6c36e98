"""The blobs of a yard, some of which belonged to checkpoints that went, and are about to go, too.

A request for one of these keeps it for `GRACE_S` more; an upload keeps it for good. So blobs that are uploaded or
referred to stay, although deletion does not look at files: see docs/internals/checkpoints.md.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from runyard import errors
from runyard.blobs import BlobWriter, RemovableBlobs
from runyard.blobs.base import Content
from runyard.model.digest import FOUND_S
from runyard.store import Store, blob_deletions

GRACE_S = 2 * FOUND_S  # no client has asked for a deleted blob for so long
LOOKS_S = 300.0  # looks within so long count as one: each is a write
PATIENCE_S = 10.0  # for a removal that is under way
PAUSE_S = 0.05


class YardBlobs:
    """As `runyard.blobs.Blobs`. Not for the store's own thread: it waits for writes."""

    def __init__(self, stored: RemovableBlobs, store: Store) -> None:
        self._stored, self._store = stored, store

    # --- looking ------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """By the clock that `FOUND_S` is measured by."""
        return self._store.now()

    def has(self, digest: str) -> bool:
        return not self.missing([digest])

    def missing(self, digests: Iterable[str]) -> set[str]:
        asked = set(digests)
        lost = self._look(asked)
        return lost | self._stored.missing(asked - lost)

    def _look(self, digests: Collection[str]) -> set[str]:
        """Those that are going or gone; the others stay for a while."""
        with self._store.read() as connection:
            lost, idle = blob_deletions.looked_at(connection, digests, self._store.now() - LOOKS_S)
        if idle:
            lost |= self._store.write(lambda c: blob_deletions.renew(c, self._store.now(), idle)).result()
        return lost

    def size(self, digest: str) -> int:
        return self._stored.size(digest)

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        return self._stored.sizes(digests)

    def read(self, digest: str, offset: int, limit: int) -> bytes:
        return self._stored.read(digest, offset, limit)

    def chunks(self, digest: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        return self._stored.chunks(digest, start, end)

    def read_many(self, digests: Collection[str]) -> dict[str, bytes]:
        return self._stored.read_many(digests)

    # --- sending ------------------------------------------------------------------------------------------------

    def is_sent(self, digest: str) -> bool:
        """Whether an upload can be skipped: then the blob stays as if it had been uploaded."""
        self._pardon([digest])
        return self._stored.has(digest)

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        self.writer(digest).write_all(chunks)

    def put_many(self, contents: Mapping[str, Content]) -> None:
        self._pardon(contents)
        self._stored.put_many(contents)

    def add(self, chunks: Iterable[bytes]) -> str:
        return self.writer().write_all(chunks)

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        self._pardon([digest])
        self._stored.adopt(digest, path, link=link)

    def writer(self, digest: str | None = None) -> BlobWriter:
        writer = self._stored.writer(digest)
        writer.arriving = lambda found: self._pardon([found])
        return writer

    def append_partial(self, digest: str, size: int, offset: int, data: bytes) -> int:
        return self._stored.append_partial(digest, size, offset, data)

    def commit_partial(self, digest: str, size: int) -> None:
        self._pardon([digest])
        self._stored.commit_partial(digest, size)

    def distrust(self, tree: str) -> None:
        """A stored tree is incomplete. It is reported as missing, so that all of it is uploaded again."""
        self._store.write(lambda connection: blob_deletions.distrust(connection, self._store.now(), tree)).result()

    def _pardon(self, digests: Collection[str]) -> None:
        """First, then what is there is not removed any more. What is being removed is waited for: it takes a moment,
        unless the process that did it was killed."""
        with self._store.read() as connection:
            known = blob_deletions.states(connection, digests)
        deadline = time.monotonic() + PATIENCE_S
        while known and (going := self._store.write(lambda c: blob_deletions.pardon(c, list(known))).result()):
            if time.monotonic() >= deadline:
                raise errors.YardUnreachable(f"{min(going)} is being removed from the yard", "send it in some minutes")
            time.sleep(PAUSE_S)
