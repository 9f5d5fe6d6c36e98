"""What a blob store promises, wherever it keeps the bytes.

Several servers may use one store at the same time. What one of them was told is stored is there for all of them, and
nothing of it is held in a process: another one can go on after any call. All methods may be called from any thread.

NotFound       no such blob
InvalidInput   not a digest, bytes that have another digest, a file that is not relayed
DiskFull, BlobStoreError   nothing was changed that would stand in the way of trying again
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runyard import errors
from runyard.blobs.writer import BlobWriter, check_found
from runyard.model.digest import check_digest
from runyard.model.wire import RELAYED_FILES, AttemptKey

CHUNK = 1 << 20
Content = bytes | memoryview  # of a small file


class Blobs(Protocol):
    """Files named by what is in them, see `runyard.model.digest`. One is there complete and checked, or not at all;
    none is ever changed, and only a yard takes some away."""

    def has(self, digest: str) -> bool: ...

    def missing(self, digests: Iterable[str]) -> set[str]:
        """Those of them that are not there: quicker than one by one."""
        ...

    def size(self, digest: str) -> int: ...

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        """Quicker than one by one."""
        ...

    def read(self, digest: str, offset: int, limit: int) -> bytes:
        """Fewer bytes only at the end. Leaves nothing open."""
        ...

    def chunks(self, digest: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to, not including, `end`, piece by piece."""
        ...

    def read_many(self, digests: Collection[str]) -> dict[str, bytes]:
        """Small ones: quicker than one by one."""
        ...

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        """Store what the chunks hold. A wrong digest leaves no trace."""
        ...

    def put_many(self, contents: Mapping[str, Content]) -> None:
        """Small ones, by digest: quicker than one by one. All digests are checked before anything is stored."""
        ...

    def add(self, chunks: Iterable[bytes]) -> str:
        """Store what the chunks hold, whatever it is; returns its digest."""
        ...

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        """Take a local file whose digest was just computed: by hard link where that is allowed and works."""
        ...

    def writer(self, digest: str | None = None) -> BlobWriter:
        """For bytes that arrive piece by piece: write(), then commit() or discard()."""
        ...

    def append_partial(self, digest: str, size: int, offset: int, data: bytes) -> int:
        """Add what is new in `data`, which may be nothing; returns the size held, from where the sender goes on, and
        which is that of the blob where it is there already. Never more than `size`, which is what the sender says of
        the whole: uploads of another size do not meet. What is not continued for a week is forgotten."""
        ...

    def commit_partial(self, digest: str, size: int) -> None:
        """It is complete. With another digest than promised it is dropped: InvalidInput."""
        ...


class RemovableBlobs(Blobs, Protocol):
    def remove(self, digests: Collection[str]) -> None:
        """Take them away, as far as they are there. For whoever knows that nobody wants them, nor is storing one of
        them at this moment; who is reading one may be cut short. What raises may have removed some."""
        ...


class AttemptFiles(Protocol):
    """Logs and other files of attempts, as far as they have been relayed.

    A file grows only at its end, and a writer names the offset: relaying the same bytes twice changes nothing, also
    at the same time through two servers. What was once told as held stays.
    """

    def append(self, key: AttemptKey, file: str, offset: int, data: bytes) -> int:
        """Add what is new in `data`; returns the size held, which is where the sender goes on from."""
        ...

    def size(self, key: AttemptKey, file: str) -> int: ...

    def sizes(self, wanted: Collection[tuple[AttemptKey, str]]) -> dict[tuple[AttemptKey, str], int]:
        """Quicker than one by one."""
        ...

    def read(self, key: AttemptKey, file: str, offset: int, limit: int) -> bytes:
        """Fewer bytes only at the end, as far as it is relayed by now."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobStore:
    """`check()` tries it out: whether it is there and lets us do what will be needed. Raises BlobStoreError."""

    blobs: RemovableBlobs
    files: AttemptFiles
    check: Callable[[], None]
    close: Callable[[], None]
    location: str  # for people


def relayed_name(key: AttemptKey, file: str) -> str:
    """A file's place among all of them, after a check: a name from outside never becomes a path as it is."""
    if file not in RELAYED_FILES:
        raise errors.InvalidInput(f"{file[:80]!r} is not a file that is relayed", f"known: {', '.join(RELAYED_FILES)}")
    return f"{key.run // 1000:05d}/{key.run}/a{key.attempt}-{file}"


def check_piece(digest: str, size: int, offset: int, data: bytes) -> None:
    if offset + len(data) > size:
        raise errors.InvalidInput(f"{digest} is to have {size} bytes, and these go on to {offset + len(data)}")


def check_complete(digest: str, size: int, held: int) -> None:
    if held != size:
        raise errors.InvalidInput(f"{digest} is not complete: {held} of {size} bytes", "send the rest")


def no_blob(digest: str) -> errors.NotFound:
    return errors.NotFound(f"there is no blob {digest}")


def check_contents(contents: Mapping[str, Content]) -> None:
    for digest, data in contents.items():
        check_found(f"sha256:{hashlib.sha256(data).hexdigest()}", check_digest(digest))
