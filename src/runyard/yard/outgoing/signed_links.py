"""Links to one file that need no token: signed by the yard, and with an expiry."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Any
from urllib.parse import quote

from runyard import errors
from runyard.settings import Settings
from runyard.store import Store, keys
from runyard.yard import views

KEY = "links"
PATH = "/api/v1/links"


class SignedLinks:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._key = b""

    def make(self, digest: str, name: str, seconds: float) -> dict[str, Any]:
        """`{"url", "expires_at"}`; empty if the yard has no known address."""
        base = self._base()
        if not base:
            return {}
        name = name.encode("utf-8", "replace").decode()  # an address has no other bytes
        expires = int(self._store.now() + seconds)
        query = f"expires={expires}&signature={self._sign(digest, name, expires)}"
        return {"url": f"{base}{PATH}/{digest}/{quote(name, safe='')}?{query}", "expires_at": views.iso(expires)}

    def check(self, digest: str, name: str, expires: int, signature: str) -> None:
        """Raises Forbidden. That a link has expired is reported only for a valid signature."""
        expected = self._sign(digest, name, expires)
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogateescape")):
            raise errors.Forbidden("this link was not made by this yard", "use it exactly as it was sent")
        if expires < self._store.now():
            raise errors.Forbidden(
                f"this link was good until {views.iso(expires)}", "ask for a new one: `runyard reply resend`"
            )

    def _base(self) -> str:
        if self._settings.public_url:
            return self._settings.public_url.rstrip("/")
        try:
            return str(json.loads(self._settings.address_file.read_text(encoding="utf-8"))["url"])
        except (OSError, ValueError, KeyError):
            return ""

    def _sign(self, digest: str, name: str, expires: int) -> str:
        text = f"{expires}\n{digest}\n{name}"
        return hmac.new(self._secret(), text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()

    def _secret(self) -> bytes:
        if not self._key:
            fresh, now = secrets.token_hex(32), self._store.now()
            with self._store.read() as connection:
                known = keys.get(connection, KEY)
            kept = known or self._store.write(lambda connection: keys.keep(connection, KEY, fresh, now)).result()
            self._key = kept.encode()
        return self._key
