"""Downloads from web servers: redirects send no secret to other hosts, and certificates are checked."""

from __future__ import annotations

import ssl
import urllib.parse
import urllib.request
from email.message import Message
from typing import IO

from runyard import errors
from runyard.version import __version__

Origin = tuple[str, str | None, int]


class Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects are followed, with the secret only on the same host."""

    max_redirections = 5

    def __init__(self, base: str) -> None:
        self._base, self.authorization = base, ""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            return None
        following = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if following is not None and self.authorization and origin(newurl) == origin(self._base):
            following.add_unredirected_header("Authorization", self.authorization)
        return following


def origin(url: str) -> Origin:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def context(authorities: str, setting: str) -> ssl.SSLContext:
    """`setting` is the name of the setting, for errors; without a file, the system's authorities are trusted."""
    try:
        return ssl.create_default_context(cafile=authorities or None)
    except (OSError, ssl.SSLError) as error:
        raise errors.ConfigError(
            f"{setting}: {authorities} cannot be used: {error.strerror or error}",
            "it names a file of certificates in PEM form",
        ) from None


def request(url: str, body: bytes | None = None) -> urllib.request.Request:
    return urllib.request.Request(url, body, {"User-Agent": f"runyard/{__version__}"})


def reason(error: Exception) -> str:
    """Why there was no answer, in a few words."""
    inner = getattr(error, "reason", error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {inner.verify_message}"
    return str(getattr(inner, "strerror", None) or inner or type(error).__name__)
