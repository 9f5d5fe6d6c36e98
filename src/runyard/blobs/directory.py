"""A blob store in a directory, which servers on several machines may share over NFS.

A blob appears by a rename, and a second writer keeps the first one's file. Bytes of growing files are written at their
offset, so two servers write the same bytes to the same position, and neither shortens a file. That needs no locks,
which some network file systems lack. Sizes are read from an open file: opening makes such file systems ask their
server.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from runyard import errors
from runyard.blobs import bulk_write
from runyard.blobs.base import (
    CHUNK,
    BlobStore,
    Content,
    check_complete,
    check_contents,
    check_piece,
    no_blob,
    relayed_name,
)
from runyard.blobs.writer import BlobWriter, check_found, prepare_incoming
from runyard.model.digest import check_digest
from runyard.model.wire import AttemptKey


def open_directory(root: Path) -> BlobStore:
    try:
        blobs = DirectoryBlobs(root / "blobs")
    except OSError as error:
        raise _unusable(root, error) from None
    check = functools.partial(_check, root)
    files = DirectoryFiles(root / "logs")
    return BlobStore(blobs=blobs, files=files, check=check, close=lambda: None, location=str(root))


class DirectoryBlobs:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._incoming = root / "incoming"
        prepare_incoming(self._incoming)

    def path(self, digest: str) -> Path:
        name = check_digest(digest).removeprefix("sha256:")
        return self._root / name[:2] / name[2:]

    def has(self, digest: str) -> bool:
        return _is_there(self.path(digest))

    def missing(self, digests: Iterable[str]) -> set[str]:
        root = os.fspath(self._root)  # thousands are checked at once, and a Path costs more than the check
        names = {check_digest(digest): digest.removeprefix("sha256:") for digest in digests}
        return {digest for digest, name in names.items() if not os.path.isfile(f"{root}/{name[:2]}/{name[2:]}")}

    def size(self, digest: str) -> int:
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise no_blob(digest) from None

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        return {digest: self.size(digest) for digest in digests}

    def read(self, digest: str, offset: int, limit: int) -> bytes:
        try:
            return _read(self.path(digest), offset, limit)
        except FileNotFoundError:
            raise no_blob(digest) from None

    def chunks(self, digest: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        left = (self.size(digest) if end is None else end) - start
        with self.path(digest).open("rb") as file:
            file.seek(start)
            while left > 0 and (data := file.read(min(CHUNK, left))):
                left -= len(data)
                yield data

    def read_many(self, digests: Collection[str]) -> dict[str, bytes]:
        return {digest: self.read(digest, 0, self.size(digest)) for digest in digests}

    def put(self, digest: str, chunks: Iterable[bytes]) -> None:
        self.writer(digest).write_all(chunks)

    def put_many(self, contents: Mapping[str, Content]) -> None:
        check_contents(contents)
        new = {digest: data for digest, data in contents.items() if not self.has(digest)}
        with bulk_write.drafts(self._incoming, new) as drafts:
            for digest, path in drafts.items():
                self._name(path, digest)
            self._settle(drafts)

    def add(self, chunks: Iterable[bytes]) -> str:
        return self.writer().write_all(chunks)

    def adopt(self, digest: str, path: Path, *, link: bool) -> None:
        target = self.path(digest)
        if _is_there(target):
            return
        target.parent.mkdir(exist_ok=True, mode=0o700)
        if link:
            with contextlib.suppress(OSError):
                os.link(path, target)
                # One file with two names: an edit in place would break the digest.
                target.chmod(target.stat().st_mode & ~0o222)
                return
        with path.open("rb") as source:
            self.put(digest, iter(lambda: source.read(CHUNK), b""))

    def writer(self, digest: str | None = None) -> BlobWriter:
        return BlobWriter(self._incoming, self._keep, check_digest(digest) if digest is not None else None)

    def append_partial(self, digest: str, size: int, offset: int, data: bytes) -> int:
        with _room(f"the upload of {digest}"), self._upload(digest, size) as handle:
            if handle is None:
                return self.size(digest)
            check_piece(digest, size, offset, data)
            return _grow(handle, offset, data)

    def commit_partial(self, digest: str, size: int) -> None:
        """Read without the lock: a complete upload does not change."""
        while not self.has(digest):
            with self._upload(digest, size) as handle:
                held = os.open(self._partial(digest, size), os.O_RDONLY) if handle is not None else None
            if held is None:
                return
            try:
                check_complete(digest, size, os.fstat(held).st_size)
                with open(held, "rb", closefd=False) as file:
                    found = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
                os.fsync(held)
                self._keep_read(digest, size, held, found)
            finally:
                os.close(held)

    def remove(self, digests: Collection[str]) -> None:
        for digest in digests:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(digest))

    def _keep_read(self, digest: str, size: int, held: int, found: str) -> None:
        """Unless it is another file by now, because the one that was read was deleted."""
        path = self._partial(digest, size)
        with self._upload(digest, size) as handle:
            if handle is None or not os.path.samestat(os.fstat(handle), os.fstat(held)):
                return
            if found == digest:
                self._keep(path, digest)
            else:
                path.unlink()
        check_found(found, digest)

    @contextlib.contextmanager
    def _upload(self, digest: str, size: int) -> Iterator[int | None]:
        """The open, locked file of an upload; None if the blob exists."""
        path = self._partial(digest, size)
        with _alone(path) as handle:
            if self.has(digest):
                path.unlink()
                yield None
            else:
                yield handle

    def _partial(self, digest: str, size: int) -> Path:
        return self._incoming / f"{check_digest(digest).removeprefix('sha256:')}.{size:d}"

    def _keep(self, path: Path, digest: str) -> None:
        self._name(path, digest)
        self._settle([digest])

    def _settle(self, digests: Iterable[str]) -> None:
        bulk_write.sync_directories([self._root, *(self.path(digest).parent for digest in digests)])

    def _name(self, path: Path, digest: str) -> None:
        """Never replaces an existing file, which may be being read."""
        target = self.path(digest)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        if _is_there(target):
            path.unlink()
        else:
            os.replace(path, target)


class DirectoryFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, key: AttemptKey, file: str) -> Path:
        return self._root / relayed_name(key, file)

    def append(self, key: AttemptKey, file: str, offset: int, data: bytes) -> int:
        with _room(f"the log of attempt {key}"):
            return _append(self.path(key, file), offset, data)

    def size(self, key: AttemptKey, file: str) -> int:
        return _size(self.path(key, file))

    def sizes(self, wanted: Collection[tuple[AttemptKey, str]]) -> dict[tuple[AttemptKey, str], int]:
        return {each: self.size(*each) for each in wanted}

    def read(self, key: AttemptKey, file: str, offset: int, limit: int) -> bytes:
        try:
            return _read(self.path(key, file), offset, limit)
        except FileNotFoundError:
            return b""


def _is_there(path: Path) -> bool:
    """By opening it: a network file system may still list a file that another server has deleted."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return False
    return True


def _size(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return 0


def _read(path: Path, offset: int, limit: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(limit)


def _append(path: Path, offset: int, data: bytes) -> int:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        return _grow(handle, offset, data)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[int]:
    """An open, locked file. Unlike logs, uploads need a lock: their bytes are not verified yet, and two senders may
    differ."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(path, handle):
                yield handle
                return
        finally:
            os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    """It may have been committed or deleted while we waited."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _grow(handle: int, offset: int, data: bytes) -> int:
    held = os.fstat(handle).st_size
    if offset > held or offset + len(data) <= held:
        return held
    rest = memoryview(data)[held - offset :]
    while rest:
        written = os.pwrite(handle, rest, held)
        held += written
        rest = rest[written:]
    return held


@contextlib.contextmanager
def _room(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise errors.DiskFull(f"{what} cannot be written: {error.strerror}") from None


def _check(root: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=root / "blobs" / "incoming") as file:
            file.write(b"runyard")
            file.flush()
    except OSError as error:
        raise _unusable(root, error) from None


def _unusable(root: Path, error: OSError) -> errors.BlobStoreError:
    return errors.BlobStoreError(f"{root} cannot store blobs: {error.strerror}", "make it writable for the yard's user")
