"""The bridge to Rodan, put together from the settings and the credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.app.broker import YARD, Connections
from runyard.app.intakes import BrokerParts, RequestQueue
from runyard.broker.address import BrokerAddress
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials
    from runyard.yard import Yard

LARGEST_REQUEST = 1 << 20  # a request names its files and does not contain them


@dataclass(frozen=True, kw_only=True, slots=True)
class Bridge:
    settings: RodanBridge
    credentials: Credentials

    @property
    def source(self) -> RequestQueue:
        found = self.credentials
        broker = BrokerAddress.parse(found.broker, password=found.broker_password, authority=found.authorities)
        return RequestQueue(table=f"bridge.{RODAN}", broker=broker, intake=self.settings.intake())


def find(settings: Settings) -> Bridge | None:
    """None if the settings have no such bridge. Raises ConfigError."""
    return known(settings.bridge[RODAN]) if RODAN in settings.bridge else None


def known(bridge: RodanBridge) -> Bridge:
    """Raises ConfigError. Removes the passwords from the environment of later child processes."""
    from runyard.bridges.rodan import credentials

    found = credentials.load(bridge.credentials)
    credentials.hide()
    return Bridge(settings=bridge, credentials=found)


def desk(yard: Yard, connections: Connections, bridge: Bridge) -> BrokerParts:
    from runyard.bridges.rodan.api import Api
    from runyard.bridges.rodan.fetcher import RodanFetcher
    from runyard.bridges.rodan.messages import Rodan
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    source = bridge.source
    connection, intake = connections.to(source.broker, YARD), source.intake
    return BrokerParts(
        receptions=[Reception(connection, intake, Rodan(), yard.preparations, LARGEST_REQUEST)],
        replies=Replies(connection, {intake.name: (intake, Rodan())}, yard.outbox),
        fetchers=[RodanFetcher(bridge.settings, Api(bridge.credentials), yard.preparations, yard.blobs.add)],
    )
