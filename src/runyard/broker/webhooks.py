"""Outgoing events by HTTP: a POST for each state change, signed with a secret that the receiver knows."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runyard import errors
from runyard.broker.listeners import EventBatch, Feed, Listener
from runyard.model.webhook import Webhook
from runyard.version import __version__

ANSWER_S = 10.0
GIVE_UP_S = 86400.0  # an event that cannot be sent for so long is dropped, or it would block all others

log = logging.getLogger(__name__)


class Hook(Listener):
    at_once = 50

    def __init__(self, webhook: Webhook, feed: Feed) -> None:
        """Raises ConfigError when the secret or the certificates cannot be read."""
        self._webhook = webhook
        self._secret = _read_secret(webhook)
        self._context = _context(webhook)
        super().__init__(f"webhook:{webhook.name}", feed)

    def tell(self, news: EventBatch) -> bool:
        hopeless = news.failing_for > GIVE_UP_S  # only the first of them: the others were not tried
        for event in news.events:
            if not self._webhook.wants(event):
                continue
            trouble = self._post(event)
            if trouble and not hopeless:
                self.failed(trouble)
                return False
            if trouble:
                log.warning("webhook %s did not get event %d: %s", self._webhook.name, event["id"], trouble)
            hopeless = False
            self.told(event["id"], more=True)
        self.told(news.events[-1]["id"])
        return len(news.events) == self.at_once

    def _post(self, event: dict[str, Any]) -> str:
        """The error; empty if it was accepted."""
        body = json.dumps(event).encode()
        try:
            status, place = self._exchange(body, self._headers(event, body))
        except (OSError, http.client.HTTPException) as error:
            return f"no answer: {getattr(error, 'strerror', None) or error or type(error).__name__}"
        if 300 <= status < 400:
            return f"it answers {status} and sends us to {place[:200]}, where we do not go"
        return "" if 200 <= status < 300 else f"it answers {status}"

    def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        parts = urlsplit(self._webhook.url)
        place = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        connection = self._connection(str(parts.hostname), parts.port)
        try:
            connection.request("POST", place, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Location") or ""
        finally:
            connection.close()

    def _connection(self, host: str, port: int | None) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=ANSWER_S)
        return http.client.HTTPSConnection(host, port, timeout=ANSWER_S, context=self._context)

    def _headers(self, event: dict[str, Any], body: bytes) -> dict[str, str]:
        now = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"runyard/{__version__}",
            "X-Runyard-Event": event["event"],
            "X-Runyard-Delivery": str(event["id"]),
            "X-Runyard-Timestamp": now,
        }
        if self._secret:
            headers["X-Runyard-Signature"] = f"sha256={signature(self._secret, now, body)}"
        return headers


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """Over timestamp and body, so that an old message cannot be sent again as a new one."""
    return hmac.new(secret, f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def _read_secret(webhook: Webhook) -> bytes:
    if not webhook.secret_file:
        return b""
    try:
        secret = Path(webhook.secret_file).expanduser().read_bytes().strip()
    except OSError as error:
        raise _wrong(webhook, f"secret_file cannot be read: {error.strerror}") from None
    if not secret:
        raise _wrong(webhook, "secret_file is empty")
    return secret


def _context(webhook: Webhook) -> ssl.SSLContext | None:
    if not webhook.url.startswith("https://"):
        return None
    try:
        return ssl.create_default_context(cafile=webhook.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise _wrong(webhook, f"ca_file cannot be used: {error.strerror or error}") from None


def _wrong(webhook: Webhook, what: str) -> errors.ConfigError:
    return errors.ConfigError(f"webhook.{webhook.name}: {what}", "correct it in config.toml")
