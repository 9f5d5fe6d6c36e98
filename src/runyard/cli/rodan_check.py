"""What `runyard bridge rodan --check` looks at: everything that a request needs on its way, and back."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.cli import rodan
from runyard.cli.verdicts import FAIL, OK, WARN, Finding
from runyard.client import Client
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials
    from runyard.broker.amqp import Connection

ANSWER_S = 15.0
REPLIES = "hpc-results"
LIMITS = {3: "128 MiB", 4: "16 MiB"}  # of a message, by the broker's version, unless it is told otherwise

Said = tuple[str, str, str]  # verdict, message, fix


def examine(loaded: Settings) -> Iterator[Finding]:
    bridge = loaded.bridge[RODAN]
    try:
        known = rodan.load(bridge.credentials)
    except errors.ConfigError as error:
        yield _failed("credentials", error)
        return
    where = bridge.credentials or "the environment"
    yield Finding(check="credentials", verdict=OK, message=f"all six variables are in {where}")
    yield from _broker(known, bridge)
    yield _finding("rodan", lambda: _rodan(known))
    yield from _recipe(loaded, bridge)


# --- the broker ---------------------------------------------------------------------------------------------------


def _broker(known: Credentials, bridge: RodanBridge) -> Iterator[Finding]:
    with contextlib.ExitStack() as stack:
        try:
            connection = _connected(known, stack)
        except errors.RunyardError as error:
            yield _failed("broker", error)
            return
        yield _finding("broker", lambda: _told(connection))
        yield _finding("queues", lambda: _transient(connection))
        yield _finding(bridge.queue, lambda: _requests(connection, bridge.queue))
        yield _finding(REPLIES, lambda: _replies(connection))


def _connected(known: Credentials, stack: contextlib.ExitStack) -> Connection:
    from runyard.broker.amqp import Connection

    connection = Connection(rodan.address(known), name="runyard check").start()
    stack.callback(connection.close)
    connection.wait_open(ANSWER_S)
    return connection


def _told(connection: Connection) -> Said:
    """The limit of a message cannot be asked for: what it is by default depends on the version."""
    properties: dict[str, Any] = _answer(connection.call(lambda: connection.line().server_properties or {}))
    version = str(properties.get("version", "?"))
    limit = LIMITS.get(int(version.partition(".")[0])) if version[:1].isdigit() else None
    said = f"{properties.get('product', 'the broker')} {version} at {connection.address}"
    if limit is None:
        return OK, said, ""
    more = f"{said}; it takes replies of up to {limit}, unless its max_message_size says otherwise"
    return (WARN, more, "set max_message_size in its rabbitmq.conf") if limit == LIMITS[4] else (OK, more, "")


def _transient(connection: Connection) -> Said:
    """With a queue of our own, because one that is there already is not refused."""
    from runyard.broker.amqp import Queue, queues

    probe = Queue(name=f"runyard.probe.{secrets.token_hex(6)}", durable=False, arguments={"x-expires": 10_000})
    _answer(queues.declare(connection, probe))
    return OK, "the broker allows queues as Rodan declares them: not durable, for all", ""


def _requests(connection: Connection, name: str) -> Said:
    from runyard.broker.amqp import Queue, queues

    found = _answer(queues.declare(connection, Queue(name=name, durable=False)))
    return OK, f"{found.messages} requests wait; {found.consumers} bridges take them", ""


def _replies(connection: Connection) -> Said:
    from runyard.broker.amqp import Queue, queues

    try:
        _answer(queues.declare(connection, Queue(name=REPLIES, passive=True)))
    except errors.BrokerRefused:
        return WARN, "it is not there yet", "Rodan declares it when it waits for its first job"
    found = _answer(queues.declare(connection, Queue(name=REPLIES, durable=False)))
    return OK, f"{found.messages} replies wait; {found.consumers} jobs of Rodan listen", ""


# --- Rodan, recipe and site -----------------------------------------------------------------------------------------


def _rodan(known: Credentials) -> Said:
    from runyard.bridges.rodan.api import Api, NotNow

    try:
        Api(known).login()
    except NotNow as error:
        return FAIL, str(error), ""
    return OK, f"{known.rodan} knows user {known.user!r}", ""


def _recipe(loaded: Settings, bridge: RodanBridge) -> Iterator[Finding]:
    with contextlib.closing(Client(home=loaded.home, start=False)) as client:
        try:
            recipe = client.recipe(bridge.recipe)["config"]
        except errors.RunyardError as error:
            yield _failed("recipe", error, f"runyard recipe add {bridge.recipe} -f recipe.yaml")
            return
        yield _finding("recipe", lambda: _allowed(bridge.recipe, recipe))
        yield _finding("site", lambda: _site(client, recipe.get("site")))


def _allowed(name: str, recipe: dict[str, Any]) -> Said:
    callers = recipe.get("callers", [])
    if callers and RODAN not in callers:
        return FAIL, f"recipe {name!r} does not name {RODAN!r} as a caller", "add it to callers, or leave them out"
    missing = [field for field in ("cpus", "memory", "time") if field not in recipe.get("resources_from", {})]
    if missing:
        return (
            WARN,
            f"recipe {name!r} takes no {', '.join(missing)} from requests",
            "add them to its resources_from",
        )
    return OK, f"recipe {name!r} takes cpus, memory and time from requests", ""


def _site(client: Client, name: str | None) -> Said:
    if name is None:
        return WARN, "the recipe names no site: its runs go wherever there is room", "write site: NAME into the recipe"
    site = client.site(name)
    if not any(agent["state"] == "alive" for agent in client.agents() if agent["site"] == name):
        return WARN, f"{site['kind']} site {name!r} has no agent now", "it comes with the bridge, or with runyard check"
    return OK, f"{site['kind']} site {name!r} is served", ""


# --- both -----------------------------------------------------------------------------------------------------------


def _answer(future: Future[Any]) -> Any:
    try:
        return future.result(ANSWER_S)
    except TimeoutError:
        raise errors.BrokerUnreachable("the broker does not answer") from None


def _finding(name: str, look: Callable[[], Said]) -> Finding:
    try:
        verdict, message, fix = look()
    except errors.RunyardError as error:
        return _failed(name, error)
    return Finding(check=name, verdict=verdict, message=message, fix=fix)


def _failed(name: str, error: errors.RunyardError, fix: str = "") -> Finding:
    return Finding(check=name, verdict=FAIL, message=error.message, fix=fix or error.fix)
