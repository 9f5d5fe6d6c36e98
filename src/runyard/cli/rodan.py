"""The bridge to Rodan, put together from the settings and the credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.broker.address import Address
from runyard.cli.brokering import YARD, Connections
from runyard.cli.sources import Desk, Source
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings
from runyard.yard import Yard

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials

LARGEST_REQUEST = 1 << 20  # a request names its files and does not hold them


@dataclass(frozen=True, kw_only=True, slots=True)
class Bridge:
    settings: RodanBridge
    credentials: Credentials

    @property
    def source(self) -> Source:
        found = self.credentials
        broker = Address.parse(found.broker, password=found.broker_password, authority=found.authorities)
        return Source(table=f"bridge.{RODAN}", broker=broker, intake=self.settings.intake())


def find(settings: Settings) -> Bridge | None:
    """None where the settings name no such bridge. Raises ConfigError."""
    return known(settings.bridge[RODAN]) if RODAN in settings.bridge else None


def known(bridge: RodanBridge) -> Bridge:
    """Raises ConfigError. What is started from here on does not find the passwords in its environment."""
    from runyard.bridges.rodan import credentials

    found = credentials.load(bridge.credentials)
    credentials.hide()
    return Bridge(settings=bridge, credentials=found)


def desk(yard: Yard, connections: Connections, bridge: Bridge) -> Desk:
    from runyard.bridges.rodan.api import Api
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.bridges.rodan.messages import Rodan
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    source = bridge.source
    connection, intake = connections.to(source.broker, YARD), source.intake
    return Desk(
        receptions=[Reception(connection, intake, Rodan(), yard.preparations, LARGEST_REQUEST)],
        replies=Replies(connection, {intake.name: (intake, Rodan())}, yard.outbox),
        fetchers=[Fetcher(bridge.settings, Api(bridge.credentials), yard.preparations, yard.blobs.add)],
    )
