"""Where requests of other programs come from: queues of brokers, and the desks at which each is taken and answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runyard import errors
from runyard.broker.address import Address, password_from
from runyard.cli.brokering import YARD, Connections, secure
from runyard.model.intake import Intake
from runyard.settings import Settings
from runyard.yard import Yard

if TYPE_CHECKING:
    from runyard.bridges.rodan.fetcher import Fetcher
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A queue from which requests are taken."""

    table: str  # of the configuration: intake.jobs
    broker: Address
    intake: Intake


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """For the sources of one broker."""

    receptions: list[Reception]
    replies: Replies
    fetchers: list[Fetcher] = field(default_factory=list)  # of what requests need


def of(settings: Settings) -> list[Source]:
    """The intakes. Raises ConfigError where one has no broker."""
    return [
        Source(table=f"intake.{name}", broker=_broker(settings, intake), intake=intake)
        for name, intake in settings.intake.items()
    ]


def _broker(settings: Settings, intake: Intake) -> Address:
    if intake.broker:
        secret = password_from(intake.broker_password_file)
        return Address.parse(intake.broker, password=secret, authority=intake.broker_ca_file)
    if not settings.broker:
        raise errors.ConfigError(
            f"intake.{intake.name}: there is no broker to take requests from",
            'write broker = "amqps://user@host/vhost"',
        )
    return Address.of(settings)


def refuse_shared(sources: Iterable[Source]) -> None:
    """Raises ConfigError: who takes a request answers it in his own words, and keeps it under his own name."""
    seen: dict[object, str] = {}
    for source in sources:
        queue, name = source.intake.queue, source.intake.name
        if (other := seen.setdefault((source.broker.place, queue), source.table)) != source.table:
            raise errors.ConfigError(
                f"[{other}] and [{source.table}] would take requests from the same queue {queue}",
                "remove one of them from config.toml, or give it another queue",
            )
        if (other := seen.setdefault(name, source.table)) != source.table:
            raise errors.ConfigError(
                f"[{other}] and [{source.table}] have the same name", f"rename [{other}] in config.toml"
            )


def secure_all(sources: Iterable[Source], connections: Connections) -> None:
    """Raises BrokerRefused where a broker does not let us have a queue as it is described."""
    from runyard.broker.intake import queue_of

    for source in sources:
        if not source.intake.passive:  # which somebody else declares, sooner or later
            secure(connections.to(source.broker, YARD), queue_of(source.intake))


def desks(yard: Yard, connections: Connections, sources: Iterable[Source]) -> list[Desk]:
    """One for each broker."""
    from runyard.bridges import formats
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    by_broker: dict[Address, list[Source]] = {}
    for source in sources:
        by_broker.setdefault(source.broker, []).append(source)
    found = []
    for broker, its in by_broker.items():
        connection = connections.to(broker, YARD)
        spoken = {one.intake.name: (one.intake, formats.load(one.intake.format, f"{one.table}.format")) for one in its}
        receptions = [Reception(connection, *one, yard.requests, yard.settings.body_limit) for one in spoken.values()]
        found.append(Desk(receptions=receptions, replies=Replies(connection, spoken, yard.outbox)))
    return found
