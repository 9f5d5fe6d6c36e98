"""What can be found out about a message broker, and what `runyard doctor` says of the one that the settings name."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from runyard import errors
from runyard.cli.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection, Queue
    from runyard.broker.amqp.queues import Declared
    from runyard.cli.sources import Source

T = TypeVar("T")
ANSWER_S = 15.0
LIMITS = {3: "128 MiB", 4: "16 MiB"}  # of a message, by the broker's version, unless it is told otherwise


def examine(loaded: Settings) -> Iterator[Finding]:
    """Nothing where the settings name no broker."""
    if loaded.broker:
        yield from _own(loaded)
    if loaded.intake:
        yield from _intakes(loaded)
    if loaded.bridge:
        yield Finding(check="bridge", verdict=OK, message="`runyard bridge rodan --check` says what works of it")


# --- to ask a broker --------------------------------------------------------------------------------------------------


def connected(
    name: str, place: Callable[[], Address], look: Callable[[Connection], Iterable[Finding]]
) -> Iterator[Finding]:
    """What is found with a connection; that there is none is a finding under that name."""
    from runyard.broker.amqp import Connection

    with contextlib.ExitStack() as stack:
        try:
            connection = Connection(place(), name="runyard check")
            stack.callback(connection.close)
            connection.open(ANSWER_S)
        except errors.RunyardError as error:
            yield failed(name, error)
            return
        yield from look(connection)


def answer(future: Future[T]) -> T:
    try:
        return future.result(ANSWER_S)
    except TimeoutError:
        raise errors.BrokerUnreachable("the broker does not answer") from None


def declared(connection: Connection, queue: Queue) -> Declared:
    from runyard.broker.amqp import queues

    return answer(queues.declare(connection, queue))


def found(connection: Connection, queue: Queue) -> Declared | None:
    """None where it is not there. Where it is, with other flags, BrokerRefused is raised; nothing is made."""
    from runyard.broker.amqp import Queue

    try:
        known = declared(connection, Queue(name=queue.name, passive=True))
    except errors.BrokerRefused:
        return None
    return known if queue.passive else declared(connection, queue)


def told(connection: Connection) -> tuple[str, int]:
    """Its name and version in words, and the first number of the version; 0 where it does not say."""
    properties = answer(connection.call(lambda: connection.line().server_properties or {}))
    version = str(properties.get("version", "?"))
    first = version.partition(".")[0]
    said = f"{properties.get('product', 'the broker')} {version} at {connection.address}"
    return said, int(first) if first.isdigit() else 0


# --- the yard's own ---------------------------------------------------------------------------------------------------


def _own(loaded: Settings) -> Iterator[Finding]:
    from runyard.broker.address import Address

    def look(connection: Connection) -> Iterator[Finding]:
        yield finding("broker", lambda: _permitted(connection))

    return connected("broker", lambda: Address.of(loaded), look)


def _permitted(connection: Connection) -> Said:
    """With a queue of its own that is named as those for tickets are: rights go by names."""
    from runyard.broker.amqp import Queue
    from runyard.broker.tickets import queue_of

    name = queue_of(f"probe-{secrets.token_hex(6)}").name
    declared(connection, Queue(name=name, durable=False, exclusive=True))
    return OK, told(connection)[0]


# --- intakes ----------------------------------------------------------------------------------------------------------


def _intakes(loaded: Settings) -> Iterator[Finding]:
    from runyard.cli import sources

    try:
        every = sources.of(loaded)
        sources.refuse_shared(every)
    except errors.RunyardError as error:
        yield failed("intakes", error)
        return
    recipes = _recipes(loaded)
    for source in every:
        yield from _intake(source, recipes)


def _recipes(loaded: Settings) -> set[str | None] | None:
    """Their names, among them None where there is a default one; None alone where no yard answers."""
    with contextlib.closing(Client(home=loaded.home, start=False)) as client:
        try:
            known = client.recipes()
        except errors.RunyardError:
            return None
    return {name for recipe in known for name in (recipe["name"], *([None] if recipe["default"] else []))}


def _intake(source: Source, recipes: set[str | None] | None) -> Iterator[Finding]:
    def look(connection: Connection) -> Iterator[Finding]:
        yield finding(source.table, lambda: _queue(connection, source, recipes))
        yield finding(source.table, lambda: _put_aside(connection, source))

    return connected(source.table, lambda: source.broker, look)


def _queue(connection: Connection, source: Source, recipes: set[str | None] | None) -> Said:
    from runyard.broker.intake import queue_of

    queue, recipe = found(connection, queue_of(source.intake)), source.intake.recipe
    if recipes is not None and recipe not in recipes:
        missing = f"recipe {recipe!r}" if recipe else "default recipe"
        return FAIL, f"there is no {missing}, so requests wait", f"runyard recipe add {recipe or 'NAME --default'} -f …"
    if queue is None:
        return WARN, f"queue {source.intake.queue} is not there yet", "a yard that starts makes it: runyard up -d"
    said = f"queue {source.intake.queue}: {queue.messages} requests wait, {queue.consumers} take them"
    if not queue.consumers:
        return WARN, said, "start the yard, or look into its log: runyard up -d"
    return OK, said


def _put_aside(connection: Connection, source: Source) -> Said:
    from runyard.broker.amqp import Queue
    from runyard.broker.amqp.dead_letters import REASON, SUFFIX

    dead = found(connection, Queue(name=f"{source.intake.queue}{SUFFIX}", passive=True))
    if dead is None or not dead.messages:
        return OK, "no message was put aside"
    return (
        WARN,
        f"{dead.messages} messages that nobody understands are in {source.intake.queue}{SUFFIX}",
        f"look at their header {REASON}, then correct the sender and empty that queue on the broker",
    )
