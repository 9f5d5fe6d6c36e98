"""Hints inside one process, and to the other servers of the yard. Losing one is harmless: listeners also poll from time
to time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection


class Hints:
    """Topics in use: `site:<name>` (work or a stop), `run:<id>` (its state changed), `log:<id>` (bytes arrived).

    A listener to `run:` gets the hints of every run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Callable[[], None]]] = {}
        self._tell_others: Callable[[str], None] | None = None

    def relay(self, tell_others: Callable[[str], None] | None) -> None:
        """Called with each topic, or prefix of topics, that is rung in this process. It must not wait."""
        self._tell_others = tell_others

    def listen(self, topic: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call a function at every ring, from any thread, until the returned function is called."""
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
        self.ring_here(topic)
        if self._tell_others is not None:
            self._tell_others(topic)

    def ring_all(self, prefix: str) -> None:
        """Ring every topic with this prefix."""
        self.ring_all_here(prefix)
        if self._tell_others is not None:
            self._tell_others(prefix)

    def ring_some(self, topics: Collection[str], prefix: str) -> None:
        """Ring some topics with this prefix. Other servers find out by themselves which."""
        for topic in topics:
            self.ring_here(topic)
        if topics and self._tell_others is not None:
            self._tell_others(prefix)

    def ring_here(self, topic: str) -> None:
        """Ring topics that other servers already know of."""
        kind, colon, _ = topic.partition(":")
        for name in {topic, f"{kind}{colon}"}:
            for callback in tuple(self._listeners.get(name, ())):
                callback()

    def ring_all_here(self, prefix: str) -> None:
        for topic in tuple(self._listeners):
            if topic.startswith(prefix):
                self.ring_here(topic)
