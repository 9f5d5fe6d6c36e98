"""What a yard has to do with other programs: their requests, the replies, and those who want to be told of events."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runyard import errors
from runyard.cli import rodan
from runyard.cli.brokering import YARD, Connections
from runyard.model.intake import Intake
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.preparations import PREPARATIONS
from runyard.yard.requests import REPLIES

if TYPE_CHECKING:
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection
    from runyard.broker.intake import Reception
    from runyard.broker.listeners import Listener
    from runyard.broker.replies import Replies

Part = Callable[[threading.Event], None]


@contextlib.contextmanager
def parts(yard: Yard, connections: Connections) -> Iterator[list[Part]]:
    """The background parts for what the settings name: none where they name nothing."""
    with contextlib.ExitStack() as stack:
        found: list[Part] = []
        for address, intakes in _by_broker(yard.settings).items():
            receptions, replies = desks(yard, connections.to(address, YARD), intakes)
            _listen(yard, stack, replies.ring, REPLIES, "run:")
            found += [*receptions, replies]
        bridge = rodan.opened(yard, connections)
        if bridge is not None:
            _listen(yard, stack, bridge.replies.ring, REPLIES, "run:")
            _listen(yard, stack, bridge.fetcher.ring, PREPARATIONS)
            found += [bridge.reception, bridge.fetcher, bridge.replies]
        for listener in listeners(yard, connections):
            _listen(yard, stack, listener.ring, "site:", "run:")
            found.append(listener)
        yield found


class Visit:
    """All of it once, for a yard without a daemon."""

    def __init__(self, yard: Yard, connections: Connections, deadline: float) -> None:
        self._deadline = deadline
        found = [
            desks(yard, connections.to(there, YARD), intakes) for there, intakes in _by_broker(yard.settings).items()
        ]
        self._sources: list[Reception | Fetcher] = [reception for receptions, _ in found for reception in receptions]
        self._talkers: list[Replies | Listener] = [*(replies for _, replies in found), *listeners(yard, connections)]
        if (bridge := rodan.opened(yard, connections)) is not None:
            self._sources += [bridge.reception, bridge.fetcher]
            self._talkers.append(bridge.replies)

    def take_requests(self) -> None:
        """Before runs are started: so they start in the same pass."""
        for source in self._sources:
            source.drain(self._deadline)

    def tell(self) -> None:
        """After runs have ended: so their replies are sent in the same pass."""
        for talker in self._talkers:
            while time.monotonic() < self._deadline and talker.tick():
                pass


def desks(yard: Yard, connection: Connection, intakes: list[Intake]) -> tuple[list[Reception], Replies]:
    """For the intakes of one broker."""
    from runyard.bridges import formats
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    spoken = {one.name: (one, formats.load(one.format, f"intake.{one.name}.format")) for one in intakes}
    largest = yard.settings.body_limit
    receptions = [Reception(connection, one, format, yard.requests, largest) for one, format in spoken.values()]
    return receptions, Replies(connection, spoken, yard.outbox)


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


def _listen(yard: Yard, stack: contextlib.ExitStack, ring: Callable[[], None], *topics: str) -> None:
    for topic in topics:
        stack.callback(yard.hints.listen(topic, ring))


def _by_broker(settings: Settings) -> dict[Address, list[Intake]]:
    found: dict[Address, list[Intake]] = {}
    for intake in settings.intake.values():
        found.setdefault(_address(settings, intake), []).append(intake)
    return found


def _address(settings: Settings, intake: Intake) -> Address:
    from runyard.broker import address

    if intake.broker:
        secret = address.password_from(intake.broker_password_file)
        return address.Address.parse(intake.broker, password=secret, authority=intake.broker_ca_file)
    if not settings.broker:
        raise errors.ConfigError(
            f"intake.{intake.name}: there is no broker to take requests from",
            'write broker = "amqps://user@host/vhost"',
        )
    return address.Address.of(settings)
