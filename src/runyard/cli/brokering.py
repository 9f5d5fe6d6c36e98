"""The message broker of a yard and of an agent, where the settings name one. Its library is loaded only then."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runyard import errors
from runyard.settings import Settings

if TYPE_CHECKING:
    import threading

    from runyard.agent.link import Link
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection
    from runyard.yard import Yard

FIRST_S = 10.0  # a broker that does not answer for so long at the start is waited for in the background

log = logging.getLogger(__name__)


def connected(settings: Settings, name: str) -> Connection:
    from runyard.broker.address import Address

    return dialled(Address.of(settings), name, "agents hear of new runs a little later")


def dialled(address: Address, name: str, meanwhile: str) -> Connection:
    """What somebody must correct is raised now; a broker that is down is told, and comes when it comes."""
    from runyard.broker.amqp import Connection

    connection = Connection(address, name=name).start()
    try:
        connection.wait_open(FIRST_S)
    except errors.BrokerUnreachable:
        log.warning("going on without the broker %s until it answers: %s", address.host, meanwhile)
    except BaseException:
        connection.close()
        raise
    return connection


def with_tickets(link: Link, site: str, settings: Settings) -> Link:
    """An agent's link that hears from the broker when there is work; the same one without a broker."""
    if not settings.broker:
        return link
    from runyard.agent.tickets import TicketLink
    from runyard.broker.tickets import Taker

    return TicketLink(link, Taker(connected(settings, f"runyard agent {site}"), site))


@contextlib.contextmanager
def offices(yard: Yard) -> Iterator[list[Callable[[threading.Event], None]]]:
    """The background parts of a yard that speak to its broker: none without one."""
    if not yard.settings.broker:
        yield []
        return
    from runyard.broker.tickets import Office

    connection = connected(yard.settings, "runyard yard")
    office = Office(connection, yard.demand)
    unlisten = yard.hints.listen("site:", office.ring)
    try:
        yield [office]
    finally:
        unlisten()
        connection.close()
