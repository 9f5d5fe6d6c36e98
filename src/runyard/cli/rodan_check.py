"""What `runyard bridge rodan --check` looks at: everything that a request needs on its way, and back."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.cli import broker_checks, rodan, sources
from runyard.cli.rodan import Bridge
from runyard.cli.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials
    from runyard.broker.amqp import Connection

REPLIES = "hpc-results"


def examine(loaded: Settings) -> Iterator[Finding]:
    try:
        bridge = rodan.known(loaded.bridge[RODAN])
    except errors.ConfigError as error:
        yield failed("credentials", error)
        return
    where = bridge.settings.credentials or "the environment"
    yield Finding(check="credentials", verdict=OK, message=f"all six variables are in {where}")
    yield from _broker(loaded, bridge)
    yield finding("rodan", lambda: _rodan(bridge.credentials))
    yield from _recipe(loaded, bridge.settings)


# --- the broker ---------------------------------------------------------------------------------------------------


def _broker(loaded: Settings, bridge: Bridge) -> Iterator[Finding]:
    def look(connection: Connection) -> Iterator[Finding]:
        yield finding("broker", lambda: _told(connection))
        yield finding("queues", lambda: _transient(connection))
        yield finding(bridge.settings.queue, lambda: _requests(connection, loaded, bridge))
        yield finding(REPLIES, lambda: _replies(connection))

    return broker_checks.connected("broker", lambda: bridge.source.broker, look)


def _told(connection: Connection) -> Said:
    """The limit of a message cannot be asked for: what it is by default depends on the version."""
    said, version = broker_checks.told(connection)
    limit = broker_checks.LIMITS.get(version)
    if limit is None:
        return OK, said
    more = f"{said}; it takes replies of up to {limit}, unless its max_message_size says otherwise"
    return (WARN, more, "set max_message_size in its rabbitmq.conf") if version == 4 else (OK, more)


def _transient(connection: Connection) -> Said:
    """With a queue of our own, because one that is there already is not refused."""
    from runyard.broker.amqp import Queue

    probe = Queue(name=f"runyard.probe.{secrets.token_hex(6)}", durable=False, arguments={"x-expires": 10_000})
    broker_checks.declared(connection, probe)
    return OK, "the broker allows queues as Rodan declares them: not durable, for all"


def _requests(connection: Connection, loaded: Settings, bridge: Bridge) -> Said:
    from runyard.broker.intake import queue_of

    sources.refuse_shared([*sources.of(loaded), bridge.source])
    found = broker_checks.declared(connection, queue_of(bridge.source.intake))
    return OK, f"{found.messages} requests wait; {found.consumers} bridges take them"


def _replies(connection: Connection) -> Said:
    from runyard.broker.amqp import Queue

    found = broker_checks.found(connection, Queue(name=REPLIES, durable=False))
    if found is None:
        return WARN, "it is not there yet", "Rodan declares it when it waits for its first job"
    return OK, f"{found.messages} replies wait; {found.consumers} jobs of Rodan listen"


# --- Rodan, recipe and site -----------------------------------------------------------------------------------------


def _rodan(known: Credentials) -> Said:
    from runyard.bridges.rodan.api import Api, NotNow

    try:
        Api(known).login()
    except NotNow as error:
        return FAIL, str(error)
    return OK, f"{known.rodan} knows user {known.user!r}"


def _recipe(loaded: Settings, bridge: RodanBridge) -> Iterator[Finding]:
    with contextlib.closing(Client(home=loaded.home, start=False)) as client:
        try:
            recipe = client.recipe(bridge.recipe)["config"]
        except errors.RunyardError as error:
            yield failed("recipe", error, f"runyard recipe add {bridge.recipe} -f recipe.yaml")
            return
        yield finding("recipe", lambda: _allowed(bridge.recipe, recipe))
        yield finding("site", lambda: _site(client, recipe.get("site")))


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
    return OK, f"recipe {name!r} takes cpus, memory and time from requests"


def _site(client: Client, name: str | None) -> Said:
    if name is None:
        return WARN, "the recipe names no site: its runs go wherever there is room", "write site: NAME into the recipe"
    site = client.site(name)
    if not any(agent["state"] == "alive" for agent in client.agents() if agent["site"] == name):
        return WARN, f"{site['kind']} site {name!r} has no agent now", "it comes with the bridge, or with runyard check"
    return OK, f"{site['kind']} site {name!r} is served"
