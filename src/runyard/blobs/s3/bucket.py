"""What can be done with the objects of a bucket, through obstore. Keys are below the prefix of its address.

From any thread: obstore's functions release Python's lock, and its connections belong to threads of its own. They do
not survive a fork. Every request of ours may arrive twice without harm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from runyard import errors
from runyard.blobs.base import CHUNK, Content
from runyard.blobs.s3 import faults
from runyard.blobs.s3.address import S3Address
from runyard.blobs.s3.credentials import credential_provider
from runyard.blobs.s3_access import S3Access

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

PART = 8 << 20  # bytes; what is larger goes in parts
PARTS_AT_ONCE = 2  # of one upload; as many are held in memory
MAX_PARTS = 10_000  # of one object, by the rules of S3
LISTED_AT_ONCE = 1000  # objects that one request lists
SILENCE_S = 60  # without a byte from S3: it has to be sent a part within this time, too
CONNECT_S = 5
RETRIES = 3
RETRIES_S = 30  # none after this time


class NoObject(Exception):
    """There is no object with this key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    key: str
    changed_at: float  # seconds of the epoch, by the clock of S3


class Bucket:
    def __init__(self, address: S3Address, access: S3Access) -> None:
        self.address = address
        self._access = access
        with self._translated():
            self._store = _open(address, access)

    def size(self, key: str) -> int | None:
        try:
            with self._translated():
                return obstore.head(self._store, key)["size"]
        except NoObject:
            return None

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to, not including, `end`. Raises NoObject."""
        return b"".join(self.chunks(key, start, end))

    def chunks(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """As `get`, piece by piece."""
        if end is not None and end <= start:
            return
        wanted = (start, end) if end is not None else {"offset": start}
        with contextlib.suppress(faults.BehindTheEnd), self._translated():
            options = {"range": wanted} if start or end is not None else None
            yield from obstore.get(self._store, key, options=options).stream(min_chunk_size=CHUNK)  # type: ignore[arg-type]

    def put(self, key: str, data: Content) -> None:
        with self._translated():
            obstore.put(self._store, key, data, use_multipart=False)

    def put_file(self, key: str, path: Path) -> None:
        self._put_large(key, path.stat().st_size, path)

    def put_all(self, key: str, size: int, chunks: Iterable[bytes]) -> None:
        """An object of about that size. It appears when the chunks have come to their end, or not at all."""
        if size <= PART:
            self.put(key, b"".join(chunks))
        else:
            with contextlib.closing(_read_ahead(iter(chunks))) as read:
                self._put_large(key, size, read)

    def find(self, folder: str, after: str = "") -> Iterator[Listed]:
        """Those below the folder, in the order of their keys, from the one behind `after`: S3 lists them so."""
        with self._translated():
            for page in obstore.list(self._store, folder, offset=after or None, chunk_size=LISTED_AT_ONCE):
                for item in page:
                    yield Listed(key=item["path"], changed_at=item["last_modified"].timestamp())

    def delete(self, keys: Sequence[str]) -> None:
        with self._translated():
            obstore.delete(self._store, keys)

    def _put_large(self, key: str, size: int, content: Path | Iterator[bytes]) -> None:
        """In parts where it is larger than one. An upload that fails is aborted, and its parts are deleted."""
        part = max(PART, -(-size // MAX_PARTS))
        with self._translated():
            obstore.put(self._store, key, content, chunk_size=part, max_concurrency=PARTS_AT_ONCE)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """obstore's errors as ours."""
        try:
            yield
        except FileNotFoundError as error:
            if faults.is_no_object(error):
                raise NoObject from None
            raise faults.translate(self.address, self._access, error) from None
        except BaseError as error:
            raise faults.translate(self.address, self._access, error) from None


def _read_ahead(chunks: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same chunks, read by another thread: an iterator that obstore reads must not call obstore."""
    with ThreadPoolExecutor(1, "s3-read") as reader:
        ahead = reader.submit(next, chunks, None)
        while (chunk := ahead.result()) is not None:
            ahead = reader.submit(next, chunks, None)
            yield chunk


def _open(address: S3Address, access: S3Access) -> S3Store:
    """Everything that decides where requests go is said here: obstore would take it from variables of the environment
    that are meant for other programs."""
    client: ClientConfig = {
        "allow_http": not address.secure,
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "read_timeout": timedelta(seconds=SILENCE_S),
        "timeout": timedelta(days=1),  # of a whole answer, however large and slowly read
    }
    if access.ca_file and address.secure:
        client["root_certificate"] = _authorities(access.ca_file)
    retries: RetryConfig = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRIES_S)}
    return S3Store(
        address.bucket, prefix=address.prefix or None, endpoint=address.url, aws_endpoint_url_s3=address.url,
        region=access.region, virtual_hosted_style_request=False, skip_signature=False, client_options=client,
        retry_config=retries, credential_provider=credential_provider(access),
    )  # fmt: skip


def _authorities(path: str) -> bytes:
    try:
        found = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise errors.ConfigError(f"s3_ca_file: {path} cannot be read: {error.strerror or error}") from None
    if b"-----BEGIN CERTIFICATE-----" not in found:
        raise errors.ConfigError(f"s3_ca_file: {path} cannot be read: it has no certificate", "write it as PEM")
    return found
