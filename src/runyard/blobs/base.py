"""The contract of a blob store, whatever its storage.

Several servers may use one store at the same time. A completed write is visible to all of them, and no state is kept in
a process: another one can continue after any call. All methods may be called from any thread.

NotFound       no such blob
InvalidInput   not a digest, bytes that have another digest, a file that is not relayed
DiskFull, BlobStoreError   the call may be repeated
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
    """Files named by their digest, see `runyard.model.digest`. Each is complete and checked, or does not exist; none is
    ever changed, and only a yard deletes some."""

    def has(self, digest: str) -> bool: ...

    def missing(self, digests: Iterable[str]) -> set[str]:
        """The digests that do not exist: faster than one by one."""
        ...

    def size(self, digest: str) -> int: ...

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        """Quicker than one by one."""
        ...

    def read(self, digest: str, offset: int, limit: int) -> bytes:
        """Fewer bytes only at the end. Leaves nothing open."""
        ...

    def chunks(self, digest: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in chunks."""
        ...

    def read_many(self, digests: Collection[str]) -> dict[str, bytes]:
        """Small blobs: faster than one by one."""
        ...

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        """Store the chunks. A wrong digest leaves nothing behind."""
        ...

    def put_many(self, contents: Mapping[str, Content]) -> None:
        """Small blobs, by digest: faster than one by one. All digests are checked before anything is stored."""
        ...

    def add(self, chunks: Iterable[bytes]) -> str:
        """Store the chunks; returns their digest."""
        ...

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        """Store a local file whose digest was just computed: by hard link if that is allowed and works."""
        ...

    def writer(self, digest: str | None = None) -> BlobWriter:
        """For bytes that arrive in chunks: write(), then commit() or discard()."""
        ...

    def append_partial(self, digest: str, size: int, offset: int, data: bytes) -> int:
        """Append the new part of `data`, which may be empty; returns the stored size, which is the next offset, and the
        size of the blob if it exists already. Never more than `size`, the sender's size of the whole: uploads of other
        sizes are separate. An upload that is not continued for a week is deleted."""
        ...

    def commit_partial(self, digest: str, size: int) -> None:
        """The upload is complete. With another digest it is deleted: InvalidInput."""
        ...


class RemovableBlobs(Blobs, Protocol):
    def remove(self, digests: Collection[str]) -> None:
        """Delete those that exist. Only for callers that know that no reference to them exists and none is being
        stored; concurrent reads may be cut short. If it raises, some may have been deleted."""
        ...


class AttemptFiles(Protocol):
    """Logs and other files of attempts, as far as uploaded.

    A file grows only at its end, and a writer names the offset: uploading the same bytes twice changes nothing, also
    at the same time through two servers. Bytes that were acknowledged stay.
    """

    def append(self, key: AttemptKey, file: str, offset: int, data: bytes) -> int:
        """Append the new part of `data`; returns the stored size, which is the next offset."""
        ...

    def size(self, key: AttemptKey, file: str) -> int: ...

    def sizes(self, wanted: Collection[tuple[AttemptKey, str]]) -> dict[tuple[AttemptKey, str], int]:
        """Quicker than one by one."""
        ...

    def read(self, key: AttemptKey, file: str, offset: int, limit: int) -> bytes:
        """Fewer bytes only at the end of what was uploaded so far."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobStore:
    """`check()` tries out whether it exists and allows all operations. Raises BlobStoreError."""

    blobs: RemovableBlobs
    files: AttemptFiles
    check: Callable[[], None]
    close: Callable[[], None]
    location: str  # for people


def relayed_name(key: AttemptKey, file: str) -> str:
    """The path of a file, validated: an untrusted name never becomes a path unchecked."""
    if file not in RELAYED_FILES:
        raise errors.InvalidInput(f"{file[:80]!r} is not a file that is relayed", f"known: {', '.join(RELAYED_FILES)}")
    return f"{key.run // 1000:05d}/{key.run}/a{key.attempt}-{file}"


def check_piece(digest: str, size: int, offset: int, data: bytes) -> None:
    if offset + len(data) > size:
        raise errors.InvalidInput(f"{digest} has {size} bytes, and these would end at {offset + len(data)}")


def check_complete(digest: str, size: int, held: int) -> None:
    if held != size:
        raise errors.InvalidInput(f"{digest} is not complete: {held} of {size} bytes", "send the rest")


def no_blob(digest: str) -> errors.NotFound:
    return errors.NotFound(f"there is no blob {digest}")


def check_contents(contents: Mapping[str, Content]) -> None:
    for digest, data in contents.items():
        check_found(f"sha256:{hashlib.sha256(data).hexdigest()}", check_digest(digest))
