"""What can be done with the objects of a bucket. Keys are below the prefix of its address."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from runyard import errors
from runyard.blobs.access import S3Access
from runyard.blobs.base import CHUNK
from runyard.blobs.s3.address import Address
from runyard.blobs.s3.client import Client, NoObject

PART = 16 << 20  # bytes; what is larger goes in parts
MOST_PARTS = 10_000  # of one object, says S3
PAGE = 1000  # objects that one request lists or deletes: more are not allowed


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    key: str
    size: int
    changed_at: float  # seconds of the epoch, by the clock of S3


class Bucket:
    def __init__(self, address: Address, access: S3Access) -> None:
        self.address = address
        self._client = Client(address, access)

    def size(self, key: str) -> int | None:
        try:
            return int(self._client.ask("HEAD", key).headers["content-length"])
        except NoObject:
            return None

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to, not including, `end`. Raises NoObject."""
        if end is not None and end <= start:
            return b""
        answer = self._client.ask("GET", key, headers=_range(start, end), allow=(416,))
        return answer.body if answer.status != 416 else b""

    def chunks(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """As `get`, piece by piece."""
        if end is not None and end <= start:
            return
        with self._client.open("GET", key, headers=_range(start, end), allow=(416,)) as answer:
            while answer.status != 416 and (data := self._client.read(answer, CHUNK)):
                yield data

    def put(self, key: str, data: bytes) -> None:
        self._client.ask("PUT", key, body=data)

    def put_all(self, key: str, size: int, chunks: Iterable[bytes]) -> None:
        """An object of about that size. It is there when the chunks have come to their end, or not at all."""
        if size <= PART:
            self.put(key, b"".join(chunks))
            return
        upload = {"uploadId": self._parse(self._client.ask("POST", key, {"uploads": ""}).body).findtext("UploadId", "")}
        try:
            tags = [
                self._client.ask("PUT", key, {**upload, "partNumber": str(number)}, body=data).headers["etag"]
                for number, data in enumerate(_regroup(chunks, max(PART, -(-size // MOST_PARTS))), 1)
            ]
            self._complete(key, upload, tags)
        except BaseException:
            with contextlib.suppress(Exception):  # the first trouble is what is told
                self._client.ask("DELETE", key, upload)
            raise

    def find(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Those whose keys begin with `prefix`, in order, from the one behind `after`."""
        whole = self.address.prefix
        while True:
            query = {"list-type": "2", "prefix": whole + prefix, "max-keys": str(PAGE)}
            if after:
                query["start-after"] = whole + after
            page = self._parse(self._client.ask("GET", "", query).body)
            for item in page.iterfind("Contents"):
                after = item.findtext("Key", "").removeprefix(whole)
                changed_at = datetime.fromisoformat(item.findtext("LastModified", "")).timestamp()
                yield Listed(key=after, size=int(item.findtext("Size", "")), changed_at=changed_at)
            if page.findtext("IsTruncated") != "true":
                return

    def delete(self, keys: Sequence[str]) -> None:
        for first in range(0, len(keys), PAGE):
            names = [f"{self.address.prefix}{key}" for key in keys[first : first + PAGE]]
            objects = "".join(f"<Object><Key>{escape(name)}</Key></Object>" for name in names)
            body = f"<Delete><Quiet>true</Quiet>{objects}</Delete>".encode()
            checksum = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
            answer = self._client.ask("POST", "", {"delete": ""}, {"Content-MD5": checksum}, body)
            if b"<Error>" in answer.body:  # quiet: it names only those that it did not delete
                raise self._client.refusal(403, answer.body)

    def _complete(self, key: str, upload: dict[str, str], tags: list[str]) -> None:
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = self._client.ask("POST", key, upload, body=body)
        if b"<Error>" in answer.body:  # it begins to answer before it knows
            raise self._client.refusal(500, answer.body)

    def close(self) -> None:
        self._client.close()

    def _parse(self, body: bytes) -> ElementTree.Element:
        """Without the name space, which not all stores write."""
        try:
            root = ElementTree.fromstring(body)
        except ElementTree.ParseError:
            raise errors.BlobStoreError(f"{self.address} does not answer as S3 does", "check `blobs`") from None
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root


def _range(start: int, end: int | None) -> dict[str, str]:
    if start == 0 and end is None:
        return {}
    return {"Range": f"bytes={start}-{'' if end is None else end - 1}"}


def _regroup(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of that size."""
    gathered = bytearray()
    for chunk in chunks:
        gathered += chunk
        while len(gathered) >= size:
            yield bytes(gathered[:size])
            del gathered[:size]
    if gathered:
        yield bytes(gathered)
