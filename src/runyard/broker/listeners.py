"""What listeners to events have in common: a part of the yard that tells one of them, pass by pass."""

from __future__ import annotations

import abc
import threading
from typing import Any, Protocol

AGAIN_S = 2.0  # between two looks, where no hint came
GATHER_S = 0.1  # events that come together are told together


class News(Protocol):
    @property
    def events(self) -> list[dict[str, Any]]: ...
    @property
    def failing_for(self) -> float: ...


class Feed(Protocol):
    """The yard's side."""

    def begin(self, listener: str) -> None: ...
    def take(self, listener: str, limit: int) -> News | None: ...
    def told(self, listener: str, position: int, *, more: bool = False) -> None: ...
    def failed(self, listener: str, trouble: str) -> None: ...
    def give_back(self, listener: str) -> None: ...


class Listener(abc.ABC):
    """A background part of the yard. Each has a thread of its own, so a slow one keeps nobody else waiting."""

    def __init__(self, name: str, feed: Feed) -> None:
        self.__name__ = self.name = name
        self._feed = feed
        self._wanted = threading.Event()
        feed.begin(name)

    def ring(self) -> None:
        """Something may have happened. From any thread; never waits."""
        self._wanted.set()

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if not self.tick():
                self._wanted.wait(AGAIN_S)
            stop.wait(GATHER_S)

    def tick(self) -> bool:
        """Tell what is new; True when there may be more."""
        self._wanted.clear()
        news = self._feed.take(self.name, self.at_once) if self.is_ready() else None
        return self.tell(news) if news is not None else False

    at_once = 100

    def is_ready(self) -> bool:
        return True

    @abc.abstractmethod
    def tell(self, news: News) -> bool:
        """Ends with `told`, `failed` or `give_back` of the feed; True when there may be more."""
