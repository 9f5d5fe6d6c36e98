"""What a yard has to do with other programs: their requests, the replies, and those who want to be told of events."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runyard.cli import rodan, sources
from runyard.cli.brokering import YARD, Connections
from runyard.cli.sources import Desk
from runyard.loop import Loop
from runyard.yard import Yard
from runyard.yard.preparations import PREPARATIONS
from runyard.yard.requests import REPLIES

if TYPE_CHECKING:
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.broker.intake import Reception
    from runyard.broker.listeners import Listener

Part = Callable[[threading.Event], None]


@contextlib.contextmanager
def parts(yard: Yard, connections: Connections) -> Iterator[list[Part]]:
    """The background parts for what the settings name: none where they name nothing."""
    with contextlib.ExitStack() as stack:
        found: list[Part] = []
        for desk in opened(yard, connections):
            _listen(yard, stack, desk.replies, REPLIES, "run:")
            for fetcher in desk.fetchers:
                _listen(yard, stack, fetcher, PREPARATIONS)
            found += [*desk.receptions, *desk.fetchers, desk.replies]
        for listener in listeners(yard, connections):
            _listen(yard, stack, listener, "site:", "run:")
            found.append(listener)
        for loop in mirrors(yard):
            _listen(yard, stack, loop, "run:")
            found.append(loop)
        yield found


class Visit:
    """All of it once, for a yard without a daemon."""

    def __init__(self, yard: Yard, connections: Connections, deadline: float) -> None:
        self._deadline = deadline
        desks = opened(yard, connections)
        self._sources: list[Reception | Fetcher] = []
        for desk in desks:
            self._sources += [*desk.receptions, *desk.fetchers]
        replies = [desk.replies for desk in desks]
        self._talkers: list[Loop] = [*replies, *listeners(yard, connections), *mirrors(yard)]

    def take_requests(self) -> None:
        """Before runs are started: so they start in the same pass."""
        for source in self._sources:
            source.drain(self._deadline)

    def tell(self) -> None:
        """After runs have ended: so their replies are sent in the same pass."""
        for talker in self._talkers:
            while time.monotonic() < self._deadline and talker.tick():
                pass


def opened(yard: Yard, connections: Connections) -> list[Desk]:
    """Raises ConfigError and BrokerRefused, before the first message is taken."""
    bridge, intakes = rodan.find(yard.settings), sources.of(yard.settings)
    every = [*intakes, bridge.source] if bridge is not None else intakes
    if not every:  # and the library for brokers may not even be there
        return []
    sources.refuse_shared(every)
    sources.secure_all(every, connections)
    desks = sources.desks(yard, connections, intakes)
    return [*desks, rodan.desk(yard, connections, bridge)] if bridge is not None else desks


def listeners(yard: Yard, connections: Connections) -> list[Listener]:
    """Those who want to be told of events."""
    from runyard.broker.webhooks import Hook

    found: list[Listener] = [Hook(webhook, yard.feed) for webhook in yard.settings.webhook.values()]
    if yard.settings.broker and yard.settings.event_exchange:
        from runyard.broker.address import Address
        from runyard.broker.events import Announcer

        connection = connections.to(Address.of(yard.settings), YARD)
        found.append(Announcer(connection, yard.settings.event_exchange, yard.feed))
    return found


def mirrors(yard: Yard) -> list[Loop]:
    """Those who bring results to a shared directory."""
    from runyard.yard import mirror

    return mirror.loops(yard.settings, yard.store, yard.blob_store)


def _listen(yard: Yard, stack: contextlib.ExitStack, part: Loop, *topics: str) -> None:
    for topic in topics:
        stack.callback(yard.hints.listen(topic, part.ring))
