"""Sources of requests of other programs: queues of brokers, and the parts that process and answer them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runyard import errors
from runyard.app.broker import YARD, Connections, secure
from runyard.broker.address import BrokerAddress, password_from
from runyard.model.intake import Intake
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.bridges.rodan.fetcher import RodanFetcher
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies
    from runyard.yard import Yard


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestQueue:
    """A queue of requests."""

    table: str  # of the configuration: intake.jobs
    broker: BrokerAddress
    intake: Intake


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerParts:
    """For the sources of one broker."""

    receptions: list[Reception]
    replies: Replies
    fetchers: list[RodanFetcher] = field(default_factory=list)  # of the files of requests


def of(settings: Settings) -> list[RequestQueue]:
    """The intakes. Raises ConfigError if one has no broker."""
    return [
        RequestQueue(table=f"intake.{name}", broker=_broker(settings, intake), intake=intake)
        for name, intake in settings.intake.items()
    ]


def _broker(settings: Settings, intake: Intake) -> BrokerAddress:
    if intake.broker:
        secret = password_from(intake.broker_password_file)
        return BrokerAddress.parse(intake.broker, password=secret, authority=intake.broker_ca_file)
    if not settings.broker:
        raise errors.ConfigError(
            f"intake.{intake.name}: there is no broker to receive requests from",
            'write broker = "amqps://user@host/vhost"',
        )
    return BrokerAddress.of(settings)


def refuse_shared(sources: Iterable[RequestQueue]) -> None:
    """Raises ConfigError: each source has its own format of replies, and stores requests under its own name."""
    seen: dict[object, str] = {}
    for source in sources:
        queue, name = source.intake.queue, source.intake.name
        if (other := seen.setdefault((source.broker.place, queue), source.table)) != source.table:
            raise errors.ConfigError(
                f"[{other}] and [{source.table}] would receive requests from the same queue {queue}",
                "remove one of them from config.toml, or give it another queue",
            )
        if (other := seen.setdefault(name, source.table)) != source.table:
            raise errors.ConfigError(
                f"[{other}] and [{source.table}] have the same name", f"rename [{other}] in config.toml"
            )


def secure_all(sources: Iterable[RequestQueue], connections: Connections) -> None:
    """Raises BrokerRefused if a broker refuses a queue as configured."""
    from runyard.broker.intake import queue_of

    for source in sources:
        if not source.intake.passive:  # a passive queue is declared by another program
            secure(connections.to(source.broker, YARD), queue_of(source.intake))


def desks(yard: Yard, connections: Connections, sources: Iterable[RequestQueue]) -> list[BrokerParts]:
    """One for each broker."""
    from runyard.bridges import formats
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    by_broker: dict[BrokerAddress, list[RequestQueue]] = {}
    for source in sources:
        by_broker.setdefault(source.broker, []).append(source)
    found = []
    for broker, its in by_broker.items():
        connection = connections.to(broker, YARD)
        spoken = {one.intake.name: (one.intake, formats.load(one.intake.format, f"{one.table}.format")) for one in its}
        receptions = [Reception(connection, *one, yard.requests, yard.settings.body_limit) for one in spoken.values()]
        found.append(BrokerParts(receptions=receptions, replies=Replies(connection, spoken, yard.outbox)))
    return found
