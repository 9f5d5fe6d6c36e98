"""The message broker of a yard and of an agent, if the settings name one. Its library is loaded only then."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from runyard import errors
from runyard.model.site import AGENT, SiteSpec
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.agent.link import Link
    from runyard.broker.address import BrokerAddress
    from runyard.broker.amqp import Connection, Queue
    from runyard.broker.listeners import Listener
    from runyard.broker.tickets import Office
    from runyard.yard import Yard

FIRST_S = 10.0  # how long a start waits for the broker; after that, it connects in the background

YARD = "runyard yard"  # in the broker's list of connections

log = logging.getLogger(__name__)


class Connections:
    """One per broker, shared by all parts; all are closed together."""

    def __init__(self) -> None:
        self._made: dict[BrokerAddress, Connection] = {}

    def to(self, address: BrokerAddress, name: str) -> Connection:
        if address not in self._made:
            self._made[address] = connected(address, name)
        return self._made[address]

    def close(self) -> None:
        for connection in self._made.values():
            connection.close()


def connected(address: BrokerAddress, name: str, *needed: Queue) -> Connection:
    """Raises errors of the configuration; a broker that does not answer is logged, and connected to later."""
    from runyard.broker.amqp import Connection

    connection = Connection(address, name=name)
    try:
        connection.open(FIRST_S)
        for queue in needed:
            secure(connection, queue)
    except errors.BrokerUnreachable:
        log.warning("continuing without the broker until it answers: news arrive a little later")
    except BaseException:
        connection.close()
        raise
    return connection


def secure(connection: Connection, queue: Queue) -> None:
    """Raises BrokerRefused if the broker refuses the queue; does not wait for a broker that does not answer."""
    from runyard.broker.amqp import queues

    with contextlib.suppress(errors.BrokerUnreachable, TimeoutError):
        queues.declare(connection, queue).result(FIRST_S)


def with_tickets(link: Link, site: str, settings: Settings) -> Link:
    """An agent's link with tickets of the broker; the same link without a broker."""
    if not settings.broker:
        return link
    from runyard.agent.tickets import TicketLink
    from runyard.broker.address import BrokerAddress
    from runyard.broker.tickets import Taker, queue_of

    return TicketLink(link, Taker(connected(BrokerAddress.of(settings), f"runyard agent {site}", queue_of(site)), site))


def offices(yard: Yard, connections: Connections) -> list[Office]:
    """The background part of a yard that issues tickets: none without a broker."""
    if not yard.settings.broker:
        return []
    from runyard.broker.address import BrokerAddress
    from runyard.broker.tickets import Office, queue_of

    connection = connections.to(BrokerAddress.of(yard.settings), YARD)
    for site in yard.sites.all():
        if SiteSpec.parse(site["config"]).served_by == AGENT:
            secure(connection, queue_of(site["name"]))
    return [Office(connection, yard.demand)]


def listeners(yard: Yard, connections: Connections) -> list[Listener]:
    """The background parts that send events: to webhooks, and to an exchange of the broker."""
    from runyard.broker.webhooks import Hook

    found: list[Listener] = [Hook(webhook, yard.feed) for webhook in yard.settings.webhook.values()]
    if yard.settings.broker and yard.settings.event_exchange:
        from runyard.broker.address import BrokerAddress
        from runyard.broker.events import Announcer

        connection = connections.to(BrokerAddress.of(yard.settings), YARD)
        found.append(Announcer(connection, yard.settings.event_exchange, yard.feed))
    return found
