"""The bridge to Rodan, put together from the settings and the credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.cli.brokering import YARD, Connections
from runyard.model.bridge import RODAN
from runyard.yard import Yard

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.broker.address import Address
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

LARGEST_REQUEST = 1 << 20  # a request names its files and does not hold them


@dataclass(frozen=True, kw_only=True, slots=True)
class Bridge:
    reception: Reception
    fetcher: Fetcher
    replies: Replies


def opened(yard: Yard, connections: Connections) -> Bridge | None:
    """None where the settings name no such bridge. Raises ConfigError, BrokerRefused."""
    bridge = yard.settings.bridge.get(RODAN)
    if bridge is None:
        return None
    from runyard.bridges.rodan.api import Api
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.bridges.rodan.messages import Rodan
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    known = load(bridge.credentials)
    connection, intake = connections.to(address(known), YARD), bridge.intake()
    return Bridge(
        reception=Reception(connection, intake, Rodan(), yard.preparations, LARGEST_REQUEST),
        fetcher=Fetcher(bridge, Api(known), yard.preparations, yard.blobs.add),
        replies=Replies(connection, {intake.name: (intake, Rodan())}, yard.outbox),
    )


def load(file: str) -> Credentials:
    """What is started from here on does not find the passwords in its environment."""
    from runyard.bridges.rodan import credentials

    found = credentials.load(file)
    credentials.hide()
    return found


def address(known: Credentials) -> Address:
    from runyard.broker.address import Address

    return Address.parse(known.broker, password=known.broker_password, authority=known.authorities)
