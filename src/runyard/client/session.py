"""The conversation with one yard: found when it is first needed, found again when it has moved."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from runyard.client import find_yard
from runyard.client.transport import NotConnected, ResponseStream, Transport

T = TypeVar("T")


class Session:
    """What runs, sweeps and transfers need of a client. Threads may share it; nothing is contacted before the first
    call."""

    def __init__(self, finder: find_yard.Finder) -> None:
        self._finder = finder
        self._lock = threading.Lock()
        self._transport: Transport | None = None
        self._sent: set[str] = set()  # digests of small files that this yard was sent

    @property
    def url(self) -> str:
        return self._connected().url

    @property
    def token(self) -> str:
        """The secret that this client sends to the yard."""
        return self._finder.secret()

    @property
    def home(self) -> Path:
        """The home directory of the yard that is used when no address is given."""
        return self._finder.home

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """One request under /api/v1, JSON in and out."""
        return self._reach(lambda transport: transport.json(method, path, body, **options))

    @contextlib.contextmanager
    def open(self, method: str, path: str, **options: Any) -> Iterator[ResponseStream]:
        """One request whose answer is read as it arrives."""
        with contextlib.ExitStack() as stack:
            yield self._reach(lambda transport: stack.enter_context(transport.open(method, path, **options)))

    def close(self) -> None:
        with self._lock:
            transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _reach(self, ask: Callable[[Transport], T]) -> T:
        """Send a request; if the address no longer answers, find the yard again: it may have another port."""
        transport = self._connected()
        try:
            return ask(transport)
        except NotConnected:
            if self._finder.url:
                raise
            return ask(self._found_again(transport))

    def _connected(self) -> Transport:
        with self._lock:
            if self._transport is None:
                target = self._finder.find()
                self._transport = Transport(target.url, target.token, ca_file=target.ca_file)
            return self._transport

    def _found_again(self, lost: Transport) -> Transport:
        with self._lock:
            if self._transport is lost or self._transport is None:
                target = self._finder.find(dead=lost.url)
                self._sent.clear()
                self._transport = Transport(target.url, target.token, ca_file=target.ca_file)
            return self._transport
