"""Rodan's HTTP interface, as much of it as a training needs: a token, and the files of a project.

The token and the password are sent to Rodan only, not to the target of a redirect.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from runyard import web
from runyard.bridges.rodan.credentials import Credentials
from runyard.model import units

LOGIN = "/api/auth/token/"
EARLIER_LOGIN = "/auth/token/"  # before Rodan's interface moved below /api, in April 2020
TIMEOUT_S = 60.0  # without a byte
CHUNK = 1 << 20
_REFUSED = (401, 403)
_PASSING = (408, 425, 429)  # of those below 500


class TemporaryRodanError(Exception):
    """Trying again may help."""


class NotEver(Exception):
    """Trying again does not help."""


class Api:
    """One at a time: it is not for several threads."""

    def __init__(self, credentials: Credentials) -> None:
        self._base, self._user, self._password = credentials.rodan, credentials.user, credentials.password
        self._host = urllib.parse.urlsplit(self._base).netloc
        self._token = ""
        # Rodan's users have names until the middle of 2023, and mail addresses since: what works is tried first.
        forms = ("email", "username") if "@" in self._user else ("username", "email")
        self._ways = [*((LOGIN, form) for form in forms), (EARLIER_LOGIN, "username")]
        self._redirects = web.Redirects(self._base)
        context = urllib.request.HTTPSHandler(context=web.context(credentials.authorities, "SSL_CERT_FILE"))
        self._files = urllib.request.build_opener(context, self._redirects)
        self._login = urllib.request.build_opener(context, _NoRedirects())

    def login(self) -> None:
        """Raises NotNow."""
        answers: list[int] = []
        for path, form in tuple(self._ways):
            if path == EARLIER_LOGIN and answers and 404 not in answers:
                continue  # this is a later one, which has said no
            status, said = self._ask_for_token(path, form)
            if status == http.HTTPStatus.OK:
                self._token = _token_of(said, self._host)
                self._redirects.authorization = f"Token {self._token}"
                self._ways.sort(key=lambda way: way != (path, form))
                return
            answers.append(status)
        raise TemporaryRodanError(_refusal(self._host, self._user, answers))

    def download(self, path: str, most: int) -> Iterator[bytes]:
        """A file, piece by piece. Raises NotNow and NotEver, in the middle of it too."""
        with contextlib.closing(self._open(path)) as answer:
            total = _length(answer, path, most)
            seen = 0
            while chunk := _read(answer, path):
                seen += len(chunk)
                if seen > most:
                    raise _too_large(path, seen, most)
                yield chunk
            if total is not None and seen < total:
                raise TemporaryRodanError(f"{path}: Rodan sent {seen} of {total} bytes")

    def _open(self, path: str) -> Any:
        """With the current token; if it is refused it may have expired, so try once more with a new one."""
        for is_last in (not self._token, True):
            if not self._token:
                self.login()
            request = web.request(f"{self._base}{urllib.parse.quote(path, safe='/%?&=:@!$,;()*+~')}")
            request.add_unredirected_header("Authorization", f"Token {self._token}")
            try:
                return self._files.open(request, timeout=TIMEOUT_S)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _REFUSED or is_last:
                        raise _of_status(path, error.code, self._host) from None
                self._token = ""
            except (OSError, http.client.HTTPException) as error:
                raise TemporaryRodanError(
                    f"{path}: Rodan at {self._host} cannot be reached: {web.reason(error)}"
                ) from None
        raise AssertionError("the second time is the last")

    def _ask_for_token(self, path: str, form: str) -> tuple[int, bytes]:
        body = urllib.parse.urlencode({form: self._user, "password": self._password}).encode()
        try:
            with self._login.open(web.request(f"{self._base}{path}", body), timeout=TIMEOUT_S) as answer:
                return int(answer.status), answer.read(CHUNK)
        except urllib.error.HTTPError as error:
            with error:
                if error.code >= 500 or error.code in _PASSING:
                    raise TemporaryRodanError(f"Rodan at {self._host} answers the login with {error.code}") from None
                if 300 <= error.code < 400:
                    there = error.headers.get("Location", "elsewhere")
                    raise TemporaryRodanError(
                        f"Rodan at {self._host} sends the login on to {there}: correct RODAN_HOST"
                    ) from None
                return error.code, b""
        except (OSError, http.client.HTTPException) as error:
            raise TemporaryRodanError(f"Rodan at {self._host} cannot be reached: {web.reason(error)}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _token_of(said: bytes, host: str) -> str:
    try:
        token = json.loads(said)["token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, str) or not token.isascii() or not token.isalnum():
        raise TemporaryRodanError(f"what answers at {host} is no Rodan: its answer to the login has no token")
    return token


def _refusal(host: str, user: str, statuses: list[int]) -> str:
    """By the clearest of the answers."""
    if 403 in statuses:
        return f"Rodan at {host} says that user {user!r} is not active (403): an administrator of Rodan can change that"
    if 401 in statuses or 400 in statuses:
        number = 401 if 401 in statuses else 400
        return f"Rodan at {host} refuses user {user!r} ({number}): correct RODAN_USER or RODAN_PASSWORD"
    return f"Rodan at {host} answers the login with {statuses[0]}: correct RODAN_HOST"


def _of_status(path: str, status: int, host: str) -> TemporaryRodanError | NotEver:
    if status >= 500 or status in _PASSING:
        return TemporaryRodanError(f"{path}: Rodan at {host} answers {status}")
    if status in _REFUSED:
        return NotEver(f"{path}: Rodan at {host} does not let this user have it ({status})")
    words = http.client.responses.get(status, "")
    return NotEver(f"{path}: Rodan at {host} answers {status} {words}".rstrip())


def _length(answer: Any, path: str, most: int) -> int | None:
    if answer.headers.get_content_type() == "text/html":
        raise NotEver(f"{path}: Rodan answers with a web page instead of a file")
    text = answer.headers.get("Content-Length")
    total = int(text) if text and text.isdigit() else None
    if total is not None and total > most:
        raise _too_large(path, total, most)
    return total


def _too_large(path: str, size: int, most: int) -> NotEver:
    return NotEver(
        f"{path}: it has at least {units.show_size(size)}, more than the {units.show_size(most)} that one input may "
        "have: raise input_limit of [bridge.rodan]"
    )


def _read(answer: Any, path: str) -> bytes:
    try:
        return bytes(answer.read(CHUNK))
    except (OSError, http.client.HTTPException) as error:
        raise TemporaryRodanError(f"{path}: the connection to Rodan broke: {web.reason(error)}") from None
