"""HTTP to one yard: requests, streams and uploads; every failure becomes a runyard error.

The standard library's http.client is used because importing a larger one costs more than most requests.
A request is repeated automatically only when it was sent on an idle connection that the yard had just closed, and only
when doing it twice is harmless.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, urlencode, urlsplit

from runyard import errors
from runyard.client.connection_pool import Pool
from runyard.version import __version__

API = "/api/v1"
TIMEOUT = 60.0
CHUNK = 1 << 18
HARMLESS_TWICE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class NotConnected(errors.YardUnreachable):
    """No connection could be made: nothing was sent."""

    code = "not_connected"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpCall:
    """One request. `body` is bytes, or the path of a file to send."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = TIMEOUT
    repeatable: bool = False


class ResponseStream:
    """An answer whose body is read as it arrives."""

    def __init__(self, response: http.client.HTTPResponse, where: str) -> None:
        self._response = response
        self._where = where
        self.status = response.status
        self.headers = response.headers

    def read(self) -> bytes:
        return b"".join(self)

    def json(self) -> Any:
        body = self.read()
        try:
            return json.loads(body) if body else None
        except ValueError:
            raise _not_a_yard(self._where, self.status) from None

    def __iter__(self) -> Iterator[bytes]:
        """Bytes as soon as there are some; raises YardUnreachable when the connection breaks before the end."""
        while chunk := self._next():
            yield chunk

    def _next(self) -> bytes:
        try:
            return self._read_some()
        except (OSError, http.client.HTTPException) as error:
            raise _broken(self._where, error) from error

    def _read_some(self) -> bytes:
        if self._response.length is None:
            return self._response.read1(CHUNK)
        chunk = self._response.read(CHUNK)
        if not chunk and self._response.length:
            raise http.client.IncompleteRead(chunk, self._response.length)
        return chunk


class Transport:
    """Sends requests to the yard at `url` with `token`. Threads may share it."""

    def __init__(self, url: str, token: str = "", *, timeout: float = TIMEOUT, ca_file: str = "") -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._address = check_url(self.url)
        self._pool = Pool(self._address, ca_file)
        self._headers = {"User-Agent": f"runyard/{__version__}"}
        if token:
            self._headers["Authorization"] = f"Bearer {_checked(token)}"

    def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        repeatable: bool | None = None,
    ) -> Any:
        """Send and receive JSON. `repeatable` says that a POST is harmless when it is done twice."""
        data = None if body is None else encode(body)
        with self.open(
            method, path, query=query, body=data, timeout=timeout or self.timeout, repeatable=repeatable,
            headers={} if data is None else {"Content-Type": "application/json"},
        ) as answer:  # fmt: skip
            return answer.json()

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: bytes | Path | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT,
        repeatable: bool | None = None,
    ) -> Iterator[ResponseStream]:
        """Send a request and read the answer inside the block. `timeout` None waits for ever between two pieces."""
        call = HttpCall(
            method=method, path=path, query=query or {}, body=body, headers=headers or {}, timeout=timeout,
            repeatable=method in HARMLESS_TWICE if repeatable is None else repeatable,
        )  # fmt: skip
        connection, response = self._exchange(call)
        try:
            stream = ResponseStream(response, self.url)
            if response.status >= 300:
                raise _refusal(stream, self.url)
            yield stream
        finally:
            self._put_away(connection, response)

    def dial(self) -> None:
        """Only check that the address accepts connections; raises NotConnected."""
        self._pool.give(self._fresh())

    def close(self) -> None:
        self._pool.close()

    def _fresh(self) -> http.client.HTTPConnection:
        try:
            return self._pool.fresh()
        except (OSError, http.client.HTTPException) as error:
            raise _refused(self.url, self._address, error) from error

    def _exchange(self, call: HttpCall) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        idle = self._pool.take()
        if idle is not None:
            try:
                return idle, self._ask(idle, call)
            except ConnectionError as error:  # closed by the yard the moment we took it
                idle.close()
                if not call.repeatable:
                    raise _broken(self.url, error) from error
            except (OSError, http.client.HTTPException) as error:
                idle.close()
                raise _broken(self.url, error) from error
        return self._exchange_fresh(call)

    def _exchange_fresh(self, call: HttpCall) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._fresh()
        try:
            return connection, self._ask(connection, call)
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise _broken(self.url, error) from error
            raise

    def _ask(self, connection: http.client.HTTPConnection, call: HttpCall) -> http.client.HTTPResponse:
        connection.sock.settimeout(call.timeout)
        with _opened(call.body) as (body, size):
            headers = {**self._headers, **call.headers}
            if size is not None:
                headers["Content-Length"] = str(size)
            try:
                connection.request(call.method, self._target(call), body, headers)
            except (BrokenPipeError, ConnectionResetError):
                if body is None:
                    raise
                # A yard that refuses a large body answers before it has read it all, and the answer says why.
        return connection.getresponse()

    def _target(self, call: HttpCall) -> str:
        """Arguments with undecodable bytes are sent as these bytes: in the yard no name matches them."""
        query = {name: value for name, value in call.query.items() if value not in (None, "", [], ())}
        target = self._address.path + API + call.path
        return f"{target}?{urlencode(query, doseq=True, errors='surrogateescape')}" if query else target

    def _put_away(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        """Only a connection whose answer was read to its end can carry another request."""
        if response.isclosed() and not response.will_close:
            self._pool.give(connection)
        else:
            connection.close()


def encode(body: Any) -> bytes:
    """JSON in ASCII, so that arguments with undecodable bytes are sent unchanged as lone surrogates."""
    try:
        return json.dumps(body, default=_plain).encode("ascii")
    except (TypeError, ValueError) as error:
        fix = "use texts, numbers, true, false, null, lists and mappings"
        raise errors.InvalidInput(f"this cannot be written as JSON: {error}", fix) from None


def check_url(url: str) -> SplitResult:
    fix = "write it like http://127.0.0.1:9090"
    try:
        address = urlsplit(url)
        address.port  # noqa: B018  (reading it is the check)
    except ValueError as error:
        raise errors.InvalidInput(f"{url!r} is not a good address: {error}", fix) from None
    is_sendable = address.path.isascii() and address.path.isprintable() and " " not in address.path
    if address.scheme not in ("http", "https") or not address.hostname or not is_sendable:
        raise errors.InvalidInput(f"{url!r} is not the address of a yard", fix)
    return address


def _checked(token: str) -> str:
    """A line break from a file is removed. An invalid token is not shown in the error."""
    secret = token.strip()
    if not secret.isascii() or not secret.isprintable():
        raise errors.Unauthorized("the token has characters that no token has", "check RUNYARD_TOKEN")
    return secret


def _plain(value: Any) -> Any:
    """Paths as texts, ranges as lists, scalars and arrays of numpy and similar libraries as numbers and lists."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, range):
        return list(value)
    for name in ("tolist", "item"):
        if callable(convert := getattr(value, name, None)):
            return convert()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


@contextlib.contextmanager
def _opened(body: bytes | Path | None) -> Iterator[tuple[bytes | IO[bytes] | None, int | None]]:
    if isinstance(body, Path):
        with body.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    else:
        yield body, None if body is None else len(body)


def _refusal(stream: ResponseStream, url: str) -> errors.RunyardError:
    try:
        body = json.loads(stream.read())
    except ValueError:
        return _not_a_yard(url, stream.status)
    return errors.from_json(stream.status, body)


def _not_a_yard(url: str, status: int) -> errors.RunyardError:
    return errors.RunyardError(f"{url} answered {status}, but not as a yard does", "check the address in RUNYARD_URL")


def _refused(url: str, address: SplitResult, error: Exception) -> NotConnected:
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return _distrusted(url, error.verify_message.rstrip("."))
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        fix = "write http:// in RUNYARD_URL, or the port of the proxy that speaks it"
        return NotConnected(f"what listens at {url} does not speak TLS: {error.reason or error}", fix)
    local = address.hostname in ("127.0.0.1", "localhost", "::1")
    fix = "runyard up -d" if local else "check RUNYARD_URL and the network"
    return NotConnected(f"no yard answers at {url}: {_words(error)}", fix)


def _distrusted(url: str, why: str) -> NotConnected:
    fix = "name the file with its authority: ca_file in config.toml, or the variable SSL_CERT_FILE"
    if "mismatch" in why:
        fix = "write the host in RUNYARD_URL as the certificate names it"
    return NotConnected(f"the certificate of the yard at {url} is not trusted: {why}", fix)


def _broken(url: str, error: Exception) -> errors.YardUnreachable:
    fix = "runyard status"
    if isinstance(error, TimeoutError):
        return errors.YardUnreachable(f"the yard at {url} did not answer in time", fix)
    return errors.YardUnreachable(f"the connection to the yard at {url} broke before its answer: {_words(error)}", fix)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
