"""Requests to S3 over connections that are kept, tried again where that can help."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runyard import errors
from runyard.blobs.access import S3Access
from runyard.blobs.s3 import faults
from runyard.blobs.s3.address import Address
from runyard.blobs.s3.signature import encode_path, encode_query, sign

TIMEOUT_S = 30.0  # without a sign of life
PAUSES_S = (0.0, 0.2, 1.0)  # before it is tried again: a connection that was kept may be over
MOST_IDLE = 32  # connections that are kept for later
_PASSING = (429, 500, 502, 503, 504)
_BROKEN = (OSError, http.client.HTTPException)
_LASTING = (TimeoutError, ssl.SSLCertVerificationError)  # or for so long that nobody should wait here


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # by their names in lower case
    body: bytes


class NoObject(Exception):
    """There is no object with this key."""


class Client:
    """From any thread. Every request of ours may arrive twice without harm."""

    def __init__(self, address: Address, access: S3Access) -> None:
        self.address, self._access = address, access
        self._idle: list[http.client.HTTPConnection] = []
        self._trust: ssl.SSLContext | None = None

    def ask(
        self, method: str, path: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None,
        body: bytes = b"", allow: tuple[int, ...] = (),
    ) -> Answer:  # fmt: skip
        """An answer that is good, or has one of the statuses in `allow`. Raises NoObject, BlobStoreError."""
        with self.open(method, path, query, headers, body, allow) as answer:
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, self.read(answer))

    @contextlib.contextmanager
    def open(
        self, method: str, path: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None,
        body: bytes = b"", allow: tuple[int, ...] = (),
    ) -> Iterator[http.client.HTTPResponse]:  # fmt: skip
        """The same, to be read piece by piece."""
        connection, answer = self._send(method, path, query or {}, headers or {}, body)
        try:
            if answer.status >= 300 and answer.status not in allow:
                raise self.refusal(answer.status, self.read(answer))
            yield answer
        finally:
            self._give_back(connection, answer)

    def read(self, answer: http.client.HTTPResponse, limit: int | None = None) -> bytes:
        try:
            data = answer.read(limit)
        except _BROKEN as error:
            raise faults.of_line(self.address, error) from None
        if not data and answer.length and limit:  # http.client says nothing of an answer that was cut
            raise faults.of_line(self.address, ConnectionError("it broke off in the middle"))
        return data

    def refusal(self, status: int, body: bytes) -> Exception:
        if status == 404 and faults.code_of(body) in ("", "NoSuchKey"):
            return NoObject()
        return faults.of_answer(self.address, self._access, status, body)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _send(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        for pause in (*PAUSES_S, None):
            connection = self._connection()
            try:
                answer = self._try(connection, method, path, query, headers, body)
                if answer.status not in _PASSING or pause is None:
                    return connection, answer
                connection.close()
            except _BROKEN as error:
                connection.close()
                self.close()  # those that were kept have gone the same way
                if pause is None or isinstance(error, _LASTING):
                    raise faults.of_line(self.address, error) from None
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _try(
        self, connection: http.client.HTTPConnection, method: str, path: str, query: Mapping[str, str],
        headers: Mapping[str, str], body: bytes,
    ) -> http.client.HTTPResponse:  # fmt: skip
        """Signed anew each time: a signature is good for some minutes."""
        target = f"/{self.address.bucket}" + (f"/{self.address.prefix}{path}" if path else "")
        signed = sign(method, target, query, {**headers, "Host": self.address.host}, body, self._access)
        text = encode_path(target) + (f"?{encode_query(query)}" if query else "")
        connection.request(method, text, body or None, signed)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        if not self.address.secure:
            return http.client.HTTPConnection(self.address.host, timeout=TIMEOUT_S)
        return http.client.HTTPSConnection(self.address.host, timeout=TIMEOUT_S, context=self._context())

    def _give_back(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        """One whose answer was not read to its end is of no further use."""
        if answer.isclosed() and not answer.will_close and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            answer.close()
            connection.close()

    def _context(self) -> ssl.SSLContext:
        if self._trust is None:
            try:
                self._trust = ssl.create_default_context(cafile=self._access.ca_file or None)
            except OSError as error:
                raise errors.ConfigError(
                    f"s3_ca_file: {self._access.ca_file} cannot be read: {error.strerror or error}"
                ) from None
        return self._trust
