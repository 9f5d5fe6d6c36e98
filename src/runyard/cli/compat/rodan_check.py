"""The checks of `runyard bridge rodan --check`: everything that a request and its reply need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.app import broker_probe, intakes, rodan
from runyard.app.broker_probe import Probe
from runyard.app.rodan import Bridge
from runyard.bridges.rodan.settings import RESOURCES
from runyard.cli.doctor import broker_checks
from runyard.cli.doctor.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.bridges.rodan.credentials import Credentials

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
    def look(probe: Probe) -> Iterator[Finding]:
        yield finding("broker", lambda: _told(probe))
        yield finding("queues", lambda: _transient(probe))
        yield finding(bridge.settings.queue, lambda: _requests(probe, loaded, bridge))
        yield finding(REPLIES, lambda: _replies(probe))

    return broker_checks.probed("broker", lambda: broker_probe.of_source(bridge.source), look)


def _told(probe: Probe) -> Said:
    """The size limit of a message cannot be queried; its default depends on the version."""
    said, version = probe.version()
    limit = broker_checks.LIMITS.get(version)
    if limit is None:
        return OK, said
    more = f"{said}; it accepts replies of up to {limit}, unless its max_message_size is set"
    return (WARN, more, "set max_message_size in its rabbitmq.conf") if version == 4 else (OK, more)


def _transient(probe: Probe) -> Said:
    probe.try_transient_queue()
    return OK, "the broker allows queues as Rodan declares them: not durable, for all"


def _requests(probe: Probe, loaded: Settings, bridge: Bridge) -> Said:
    intakes.refuse_shared([*intakes.of(loaded), bridge.source])
    found = probe.make_requests(bridge.source.intake)
    return OK, f"{found.messages} requests waiting; {found.consumers} bridges consume them"


def _replies(probe: Probe) -> Said:
    found = probe.transient(REPLIES)
    if found is None:
        return WARN, "it does not exist yet", "Rodan declares it when it waits for its first job"
    return OK, f"{found.messages} replies waiting; {found.consumers} jobs of Rodan consume them"


# --- Rodan, recipe and site -----------------------------------------------------------------------------------------


def _rodan(known: Credentials) -> Said:
    from runyard.bridges.rodan.api import Api, TemporaryRodanError

    try:
        Api(known).login()
    except TemporaryRodanError as error:
        return FAIL, str(error)
    return OK, f"{known.rodan} accepts user {known.user!r}"


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
    missing = [name for name in RESOURCES.values() if name not in recipe.get("resources_from", {})]
    if missing:
        return (
            WARN,
            f"recipe {name!r} does not take {', '.join(missing)} from requests",
            "add them to its resources_from",
        )
    return OK, f"recipe {name!r} takes cpus, memory and time from requests"


def _site(client: Client, name: str | None) -> Said:
    if name is None:
        return WARN, "the recipe names no site: its runs may execute at any site", "write site: NAME into the recipe"
    site = client.site(name)
    if not any(agent["state"] == "alive" for agent in client.agents() if agent["site"] == name):
        return WARN, f"{site['kind']} site {name!r} has no agent now", "start the bridge, or call runyard check"
    return OK, f"{site['kind']} site {name!r} has an agent"
