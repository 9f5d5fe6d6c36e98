"""What a yard has to do with other programs: their requests, the replies, and those who want to be told of events."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runyard import errors
from runyard.cli import brokering
from runyard.model.intake import Intake
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.requests import REPLIES

if TYPE_CHECKING:
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

Part = Callable[[threading.Event], None]


@contextlib.contextmanager
def parts(yard: Yard) -> Iterator[list[Part]]:
    """The background parts for what the settings name: none where they name nothing."""
    with contextlib.ExitStack() as stack:
        found: list[Part] = []
        for intakes in _by_broker(yard.settings).values():
            receptions, replies = _desks(yard, intakes, stack)
            found += [*receptions, replies]
        yield found


def _desks(yard: Yard, intakes: list[Intake], stack: contextlib.ExitStack) -> tuple[list[Reception], Replies]:
    """For the intakes of one broker."""
    from runyard.bridges import formats
    from runyard.broker.intake import Reception
    from runyard.broker.replies import Replies

    spoken = {intake.name: formats.load(intake.format, f"intake.{intake.name}.format") for intake in intakes}
    connection = _connected(yard.settings, intakes[0], stack)
    replies = Replies(connection, {intake.name: (intake, spoken[intake.name]) for intake in intakes}, yard.outbox)
    for topic in (REPLIES, "run:"):
        stack.callback(yard.hints.listen(topic, replies.ring))
    largest = yard.settings.body_limit
    receptions = [Reception(connection, one, spoken[one.name], yard.requests, largest) for one in intakes]
    return receptions, replies


def _connected(settings: Settings, intake: Intake, stack: contextlib.ExitStack) -> Connection:
    connection = brokering.dialled(_address(settings, intake), "runyard intake", "requests wait there until then")
    stack.callback(connection.close)
    return connection


def _by_broker(settings: Settings) -> dict[tuple[str, str, str], list[Intake]]:
    found: dict[tuple[str, str, str], list[Intake]] = {}
    for intake in settings.intake.values():
        found.setdefault((intake.broker, intake.broker_password_file, intake.broker_ca_file), []).append(intake)
    return found


def _address(settings: Settings, intake: Intake) -> Address:
    from runyard.broker import address

    if intake.broker:
        secret = address.read_secret(intake.broker_password_file)
        return address.Address.parse(intake.broker, password=secret, authority=intake.broker_ca_file)
    if not settings.broker:
        raise errors.ConfigError(
            f"intake.{intake.name}: there is no broker to take requests from",
            'write broker = "amqps://user@host/vhost"',
        )
    return address.Address.of(settings)
