"""Hints inside one process. Losing one is harmless: whoever listens also looks from time to time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Hints:
    """Topics in use: `site:<name>` (work or a stop), `run:<id>` (its state moved), `log:<id>` (bytes arrived).

    Whoever listens to `run:` hears of every run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Callable[[], None]]] = {}

    def listen(self, topic: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back on every ring, from any thread, until the returned function is called."""
        with self._lock:
            self._listeners.setdefault(topic, []).append(callback)

        def unlisten() -> None:
            with self._lock:
                callbacks = self._listeners.get(topic, [])
                if callback in callbacks:
                    callbacks.remove(callback)
                if not callbacks:
                    self._listeners.pop(topic, None)

        return unlisten

    def ring(self, topic: str) -> None:
        kind, colon, _ = topic.partition(":")
        for name in {topic, f"{kind}{colon}"}:
            for callback in tuple(self._listeners.get(name, ())):
                callback()

    def ring_all(self, prefix: str) -> None:
        """Ring every topic that starts so."""
        for topic in tuple(self._listeners):
            if topic.startswith(prefix):
                self.ring(topic)
