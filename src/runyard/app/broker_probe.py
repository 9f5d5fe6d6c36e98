"""Queries a message broker's version and permissions: for `runyard doctor` and `runyard bridge rodan --check`."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from runyard import errors
from runyard.app.intakes import RequestQueue
from runyard.broker.address import BrokerAddress
from runyard.model.intake import Intake
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.broker.amqp import Connection, Queue
    from runyard.broker.amqp.queues import DeclaredQueue

T = TypeVar("T")
ANSWER_S = 15.0


def of_yard(loaded: Settings) -> contextlib.AbstractContextManager[Probe]:
    """The broker that the settings name. Raises BrokerError, ConfigError."""
    return _opened(BrokerAddress.of(loaded))


def of_source(source: RequestQueue) -> contextlib.AbstractContextManager[Probe]:
    """The broker that requests come from. Raises BrokerError."""
    return _opened(source.broker)


@contextlib.contextmanager
def _opened(address: BrokerAddress) -> Iterator[Probe]:
    from runyard.broker.amqp import Connection

    connection = Connection(address, name="runyard check")
    try:
        connection.open(ANSWER_S)
        yield Probe(connection)
    finally:
        connection.close()


class Probe:
    """An open connection. Every query raises BrokerError without an answer, or after a refusal."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def version(self) -> tuple[str, int]:
        """Its name and version as text, and the major version; 0 if unknown."""
        connection = self._connection
        properties = _answer(connection.call(lambda: connection.line().server_properties or {}))
        version = str(properties.get("version", "?"))
        first = version.partition(".")[0]
        said = f"{properties.get('product', 'the broker')} {version} at {connection.address}"
        return said, int(first) if first.isdigit() else 0

    def try_ticket_queue(self) -> None:
        """With a queue named like those for tickets: permissions depend on names."""
        from runyard.broker.amqp import Queue
        from runyard.broker.tickets import queue_of

        name = queue_of(f"probe-{secrets.token_hex(6)}").name
        self._declared(Queue(name=name, durable=False, exclusive=True))

    def try_transient_queue(self) -> None:
        """With a new queue, because an existing one is not refused."""
        from runyard.broker.amqp import Queue

        name = f"runyard.probe.{secrets.token_hex(6)}"
        self._declared(Queue(name=name, durable=False, arguments={"x-expires": 10_000}))

    def make_requests(self, intake: Intake) -> DeclaredQueue:
        """The queue of an intake, declared as a yard declares it."""
        from runyard.broker.intake import queue_of

        return self._declared(queue_of(intake))

    def requests(self, intake: Intake) -> DeclaredQueue | None:
        """The queue of an intake; None if it does not exist."""
        from runyard.broker.intake import queue_of

        return self._found(queue_of(intake))

    def dead_letters(self, intake: Intake) -> DeclaredQueue | None:
        """The queue of rejected messages of an intake; None if it does not exist."""
        from runyard.broker.amqp import Queue

        return self._found(Queue(name=dead_letter_queue(intake), passive=True))

    def transient(self, name: str) -> DeclaredQueue | None:
        """A queue that is not durable; None if it does not exist."""
        from runyard.broker.amqp import Queue

        return self._found(Queue(name=name, durable=False))

    def _declared(self, queue: Queue) -> DeclaredQueue:
        from runyard.broker.amqp import queues

        return _answer(queues.declare(self._connection, queue))

    def _found(self, queue: Queue) -> DeclaredQueue | None:
        """None if it does not exist. Raises BrokerRefused if it exists with other flags; nothing is created."""
        from runyard.broker.amqp import Queue

        try:
            known = self._declared(Queue(name=queue.name, passive=True))
        except errors.BrokerRefused:
            return None
        return known if queue.passive else self._declared(queue)


def dead_letter_queue(intake: Intake) -> str:
    from runyard.broker.amqp.dead_letters import SUFFIX

    return f"{intake.queue}{SUFFIX}"


def dead_letter_header() -> str:
    """The header with the reason why a message was rejected."""
    from runyard.broker.amqp.dead_letters import REASON

    return REASON


def _answer(future: Future[T]) -> T:
    try:
        return future.result(ANSWER_S)
    except TimeoutError:
        raise errors.BrokerUnreachable("the broker does not answer") from None
