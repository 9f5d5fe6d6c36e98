"""The common part of event listeners: sends events to one of them, pass by pass."""

from __future__ import annotations

import abc
import logging
from typing import Any, Protocol

from runyard.loop import Loop

log = logging.getLogger(__name__)


class EventBatch(Protocol):
    @property
    def events(self) -> list[dict[str, Any]]: ...
    @property
    def failing_for(self) -> float: ...


class Feed(Protocol):
    """The yard's side."""

    def begin(self, listener: str) -> None: ...
    def take(self, listener: str, limit: int) -> EventBatch | None: ...
    def told(self, listener: str, position: int, *, more: bool = False) -> None: ...
    def failed(self, listener: str, trouble: str) -> None: ...
    def give_back(self, listener: str) -> None: ...


class Listener(Loop):
    gather_s = 0.1  # events that arrive together are sent together
    at_once = 100

    def __init__(self, name: str, feed: Feed) -> None:
        self._feed = feed
        self._trouble = ""
        feed.begin(name)
        super().__init__(name)

    def failed(self, trouble: str) -> None:
        """The next event could not be sent. A lasting problem is logged once."""
        if trouble != self._trouble:
            log.warning("events cannot be sent to %s: %s", self.name, trouble)
        self._trouble = trouble
        self._feed.failed(self.name, trouble)

    def told(self, position: int, *, more: bool = False) -> None:
        self._trouble = ""
        self._feed.told(self.name, position, more=more)

    def tick(self) -> bool:
        """Send new events; True when there may be more."""
        news = self._feed.take(self.name, self.at_once) if self.is_ready() else None
        return self.tell(news) if news is not None else False

    def is_ready(self) -> bool:
        return True

    @abc.abstractmethod
    def tell(self, news: EventBatch) -> bool:
        """Ends with `told`, `failed` or the feed's `give_back`; True when there may be more."""
