"""The message broker of a yard and of an agent, where the settings name one. Its library is loaded only then."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runyard import errors
from runyard.model.site import AGENT, SiteSpec
from runyard.settings import Settings

if TYPE_CHECKING:
    import threading

    from runyard.agent.link import Link
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection, Queue
    from runyard.yard import Yard

FIRST_S = 10.0  # a broker that does not answer for so long at the start is waited for in the background

YARD = "runyard yard"  # in the broker's list of connections

log = logging.getLogger(__name__)


class Connections:
    """One for each broker, however many parts speak to it; all end together."""

    def __init__(self) -> None:
        self._made: dict[Address, Connection] = {}

    def to(self, address: Address, name: str) -> Connection:
        if address not in self._made:
            self._made[address] = connected(address, name)
        return self._made[address]

    def close(self) -> None:
        for connection in self._made.values():
            connection.close()


def connected(address: Address, name: str, *needed: Queue) -> Connection:
    """What somebody must correct is raised now; a broker that is down is told, and comes when it comes."""
    from runyard.broker.amqp import Connection

    connection = Connection(address, name=name)
    try:
        connection.open(FIRST_S)
        for queue in needed:
            secure(connection, queue)
    except errors.BrokerUnreachable:
        log.warning("going on without the broker until it answers: what is new is heard of a little later")
    except BaseException:
        connection.close()
        raise
    return connection


def secure(connection: Connection, queue: Queue) -> None:
    """Raises BrokerRefused where the broker does not let us have the queue; one that is down is not waited for."""
    from runyard.broker.amqp import queues

    with contextlib.suppress(errors.BrokerUnreachable, TimeoutError):
        queues.declare(connection, queue).result(FIRST_S)


def with_tickets(link: Link, site: str, settings: Settings) -> Link:
    """An agent's link that hears from the broker when there is work; the same one without a broker."""
    if not settings.broker:
        return link
    from runyard.agent.tickets import TicketLink
    from runyard.broker.address import Address
    from runyard.broker.tickets import Taker, queue_of

    return TicketLink(link, Taker(connected(Address.of(settings), f"runyard agent {site}", queue_of(site)), site))


@contextlib.contextmanager
def offices(yard: Yard, connections: Connections) -> Iterator[list[Callable[[threading.Event], None]]]:
    """The background parts of a yard that give out tickets: none without a broker."""
    if not yard.settings.broker:
        yield []
        return
    from runyard.broker.address import Address
    from runyard.broker.tickets import Office, queue_of

    connection = connections.to(Address.of(yard.settings), YARD)
    for site in yard.places.sites():
        if SiteSpec.parse(site["config"]).served_by == AGENT:
            secure(connection, queue_of(site["name"]))
    office = Office(connection, yard.demand)
    unlisten = yard.hints.listen("site:", office.ring)
    try:
        yield [office]
    finally:
        unlisten()
