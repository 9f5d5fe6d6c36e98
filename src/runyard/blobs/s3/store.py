"""Blobs and the files of attempts, as objects.

blobs/ab/cdef…        a blob
incoming/abcdef….1024/  segments of an upload that is not complete
logs/00001/1234/a1-log/   segments of a file that grows
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from runyard import errors
from runyard.blobs.base import CHUNK, Content, check_complete, check_contents, check_piece, no_blob, relayed_name
from runyard.blobs.s3.bucket import Bucket, NoObject
from runyard.blobs.s3.segments import Segments
from runyard.blobs.writer import KEPT_S, BlobWriter, check_found, prepare_incoming
from runyard.model.digest import check_digest
from runyard.model.wire import AttemptKey

AT_ONCE = 16  # requests, where many are to be made

T = TypeVar("T", bound=Hashable)
R = TypeVar("R")


class S3Blobs:
    """Bytes that come in one request wait in `incoming`, a directory of this machine, until their digest is known.
    Uploads in several requests wait in the bucket: the next one may come to another server."""

    def __init__(self, bucket: Bucket, incoming: Path) -> None:
        self._bucket, self._incoming = bucket, incoming
        self._segments = Segments(bucket)
        prepare_incoming(incoming)

    def has(self, digest: str) -> bool:
        return self._bucket.size(_key(digest)) is not None

    def missing(self, digests: Iterable[str]) -> set[str]:
        return {digest for digest, there in _each(self.has, set(digests)).items() if not there}

    def size(self, digest: str) -> int:
        size = self._bucket.size(_key(digest))
        if size is None:
            raise no_blob(digest)
        return size

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        return _each(self.size, digests)

    def read(self, digest: str, offset: int, limit: int) -> bytes:
        try:
            return self._bucket.get(_key(digest), offset, offset + limit)
        except NoObject:
            raise no_blob(digest) from None

    def chunks(self, digest: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        try:
            yield from self._bucket.chunks(_key(digest), start, end)
        except NoObject:
            raise no_blob(digest) from None

    def read_many(self, digests: Collection[str]) -> dict[str, bytes]:
        return _each(lambda digest: b"".join(self.chunks(digest)), digests)

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        self.writer(digest).write_all(chunks)

    def put_many(self, contents: Mapping[str, Content]) -> None:
        check_contents(contents)
        _each(lambda digest: self._bucket.put(_key(digest), contents[digest]), contents)

    def add(self, chunks: Iterable[bytes]) -> str:
        return self.writer().write_all(chunks)

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        if not self.has(digest):
            self._store(digest, path.stat().st_size, _file_chunks(path))

    def writer(self, digest: str | None = None) -> BlobWriter:
        return BlobWriter(self._incoming, self._keep, check_digest(digest) if digest is not None else None)

    def append_partial(self, digest: str, size: int, offset: int, data: bytes) -> int:
        stored = self._bucket.size(_key(digest))
        if stored is not None:
            return stored
        check_piece(digest, size, offset, data)
        if offset == 0 and data:
            self._forget_old()
        return self._segments.append(_incoming(digest, size), offset, data)

    def commit_partial(self, digest: str, size: int) -> None:
        name = _incoming(digest, size)
        held = self._segments.size(name)
        if not self.has(digest):  # checked second: a commit deletes the segments afterwards
            check_complete(digest, size, held)
            try:
                self._store(digest, size, self._segments.chunks(name, 0, size))
            except errors.InvalidInput:
                if not self.has(digest):  # it was not committed and cleared meanwhile
                    self._segments.remove(name)
                    raise
        self._segments.remove(name)

    def remove(self, digests: Collection[str]) -> None:
        self._bucket.delete([_key(digest) for digest in digests])

    def _keep(self, path: Path, digest: str) -> None:
        if not self.has(digest):
            self._bucket.put_file(_key(digest), path)

    def _store(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        self._bucket.put_all(_key(digest), size, _checked(chunks, digest))

    def _forget_old(self) -> None:
        before = time.time() - KEPT_S
        self._bucket.delete([item.key for item in self._bucket.find("incoming/") if item.changed_at < before])


class S3Files:
    def __init__(self, bucket: Bucket) -> None:
        self._segments = Segments(bucket)

    def append(self, key: AttemptKey, file: str, offset: int, data: bytes) -> int:
        return self._segments.append(_log(key, file), offset, data)

    def size(self, key: AttemptKey, file: str) -> int:
        return self._segments.size(_log(key, file))

    def sizes(self, wanted: Collection[tuple[AttemptKey, str]]) -> dict[tuple[AttemptKey, str], int]:
        return _each(lambda each: self.size(*each), wanted)

    def read(self, key: AttemptKey, file: str, offset: int, limit: int) -> bytes:
        return self._segments.read(_log(key, file), offset, limit)


def check_bucket(bucket: Bucket) -> None:
    """Everything that we may have to be allowed, on an object of its own."""
    folder, name = "check", f"check/{secrets.token_hex(8)}"
    bucket.put(name, name.encode())
    try:
        is_shown = bucket.get(name) == name.encode() and any(item.key == name for item in bucket.find(folder))
    except NoObject:
        is_shown = False
    bucket.delete([name])
    if not is_shown:
        raise errors.BlobStoreError(f"{bucket.address} does not show at once what was stored", "use one that does")


def _key(digest: str) -> str:
    name = check_digest(digest).removeprefix("sha256:")
    return f"blobs/{name[:2]}/{name[2:]}"


def _incoming(digest: str, size: int) -> str:
    return f"incoming/{check_digest(digest).removeprefix('sha256:')}.{size:d}"


def _log(key: AttemptKey, file: str) -> str:
    return f"logs/{relayed_name(key, file)}"


def _checked(chunks: Iterable[bytes], digest: str) -> Iterator[bytes]:
    """The same, with an error instead of an end where they have another digest."""
    seen = hashlib.sha256()
    for chunk in chunks:
        seen.update(chunk)
        yield chunk
    check_found(f"sha256:{seen.hexdigest()}", digest)


def _file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK), b"")


def _each(work: Callable[[T], R], items: Collection[T]) -> dict[T, R]:
    """What the work gives for each of them, several at a time; raises what the first of them raises."""
    if not items:
        return {}
    with ThreadPoolExecutor(min(AT_ONCE, len(items)), "s3") as pool:
        return dict(zip(items, pool.map(work, items), strict=True))
