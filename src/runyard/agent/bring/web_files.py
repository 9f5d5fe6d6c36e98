"""Fetch a file from a URL, with a secret that is sent to its own host only."""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runyard import errors, settings, web
from runyard.model import units
from runyard.model.input_file import shown_url
from runyard.model.secret import Secret

TIMEOUT_S = 60.0  # without a byte
CHUNK = 1 << 20
PAUSES_S = (1.0, 3.0, 10.0)  # before retries
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PASSING = (408, 425, 429)  # temporary errors below 500


class NotFetched(Exception):
    """The message names the file and the reason; it contains no secret and no query."""


class TemporaryFetchError(NotFetched):
    """Trying again may help."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebFetcher:
    """With the settings of the site's agent."""

    secrets: Mapping[str, Secret]
    limit: int  # bytes of one file
    ca_file: str = ""
    sleep: Callable[[float], None] = time.sleep

    def fetch(self, url: str, secret: str, target: Path, seen: Callable[[int], None]) -> None:
        """Into this file, which is replaced. Raises NotFetched; `seen` is called with the number of bytes so far."""
        for pause in (*PAUSES_S, None):
            try:
                with target.open("wb") as file:
                    for piece in self._pieces(url, self._authorization(url, secret)):
                        file.write(piece)
                        seen(file.tell())
                return
            except TemporaryFetchError:
                if pause is None:
                    raise
                self.sleep(pause)

    def _authorization(self, url: str, name: str) -> str:
        if not name:
            return ""
        known = self.secrets.get(name)
        if known is None:
            raise NotFetched(f"{shown_url(url)}: the agent of this site has no [secrets.{name}] in its config.toml")
        parts = urlsplit(url)
        if parts.netloc.lower() not in known.hosts:
            raise NotFetched(f"{shown_url(url)}: the secret {name!r} is not for {parts.netloc}")
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise NotFetched(f"{shown_url(url)}: the secret {name!r} is sent over https only")
        return f"{known.scheme} {_read(known)}"

    def _pieces(self, url: str, authorization: str) -> Iterator[bytes]:
        with contextlib.closing(self._open(url, authorization)) as answer:
            text = answer.headers.get("Content-Length")
            total = int(text) if text and text.isdigit() else None
            seen = 0
            self._check_size(url, total or 0)
            while piece := _receive(answer, url):
                seen += len(piece)
                self._check_size(url, seen)
                yield piece
            if total is not None and seen < total:
                raise TemporaryFetchError(f"{shown_url(url)}: only {seen} of {total} bytes arrived")

    def _open(self, url: str, authorization: str) -> Any:
        redirects = web.Redirects(url)
        redirects.authorization = authorization
        secure = urllib.request.HTTPSHandler(context=self._context())
        request = web.request(url)
        if authorization:
            request.add_unredirected_header("Authorization", authorization)
        try:
            return urllib.request.build_opener(secure, redirects).open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                raise _of_status(url, error.code) from None
        except (OSError, http.client.HTTPException) as error:
            raise TemporaryFetchError(f"{shown_url(url)}: it cannot be reached: {web.reason(error)}") from None

    def _context(self) -> ssl.SSLContext:
        """The certificate authority of the yard is the lab's own, and trusted in addition to the system's."""
        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        return context

    def _check_size(self, url: str, size: int) -> None:
        if size > self.limit:
            most = units.show_size(self.limit)
            raise NotFetched(f"{shown_url(url)}: it is larger than {most}, the input_limit of the site's agent")


NOTHING = WebFetcher(secrets={}, limit=0)


def _of_status(url: str, status: int) -> NotFetched:
    told = f"{shown_url(url)}: its server answers {status} {http.client.responses.get(status, '')}".rstrip()
    return TemporaryFetchError(told) if status >= 500 or status in _PASSING else NotFetched(told)


def _receive(answer: Any, url: str) -> bytes:
    try:
        return bytes(answer.read1(CHUNK))  # what is available, so that progress is seen with a slow server
    except (OSError, http.client.HTTPException) as error:
        raise TemporaryFetchError(f"{shown_url(url)}: the connection broke: {web.reason(error)}") from None


def _read(secret: Secret) -> str:
    """Read each time: it may have been changed. Raises NotFetched without the value in it."""
    path = Path(secret.file).expanduser()
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            raise NotFetched(f"the secret {secret.name!r}: {path} is readable by other users ({mode:o}); chmod 600 it")
        text = settings.read_secret(str(path), f"the secret {secret.name!r}", "").strip()
    except OSError as error:
        raise NotFetched(f"the secret {secret.name!r} cannot be read: {path}: {error.strerror}") from None
    except errors.ConfigError as error:
        raise NotFetched(error.message) from None
    if not text or not text.isascii() or not text.isprintable():
        raise NotFetched(f"the secret {secret.name!r}: {path} must contain one line of plain text")
    return text
