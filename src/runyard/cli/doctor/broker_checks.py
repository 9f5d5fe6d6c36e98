"""Checks of a message broker, and those of `runyard doctor` for the one in the settings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from runyard import errors
from runyard.app import broker_probe, intakes
from runyard.app.broker_probe import Probe
from runyard.app.intakes import RequestQueue
from runyard.cli.doctor.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.settings import Settings

LIMITS = {3: "128 MiB", 4: "16 MiB"}  # of a message, by the broker's version, unless max_message_size is set


def examine(loaded: Settings) -> Iterator[Finding]:
    """Nothing if the settings name no broker."""
    if loaded.broker:
        yield from _own(loaded)
    if loaded.intake:
        yield from _intakes(loaded)
    if loaded.bridge:
        yield Finding(check="bridge", verdict=OK, message="checked by `runyard bridge rodan --check`")


def probed(
    name: str, opened: Callable[[], AbstractContextManager[Probe]], look: Callable[[Probe], Iterable[Finding]]
) -> Iterator[Finding]:
    """The findings with a connection; a failed connection is a finding of that name."""
    with contextlib.ExitStack() as stack:
        try:
            probe = stack.enter_context(opened())
        except errors.RunyardError as error:
            yield failed(name, error)
            return
        yield from look(probe)


# --- the yard's own ---------------------------------------------------------------------------------------------------


def _own(loaded: Settings) -> Iterator[Finding]:
    def look(probe: Probe) -> Iterator[Finding]:
        yield finding("broker", lambda: _permitted(probe))

    return probed("broker", lambda: broker_probe.of_yard(loaded), look)


def _permitted(probe: Probe) -> Said:
    probe.try_ticket_queue()
    return OK, probe.version()[0]


# --- intakes ----------------------------------------------------------------------------------------------------------


def _intakes(loaded: Settings) -> Iterator[Finding]:
    try:
        every = intakes.of(loaded)
        intakes.refuse_shared(every)
    except errors.RunyardError as error:
        yield failed("intakes", error)
        return
    recipes = _recipes(loaded)
    for source in every:
        yield from _intake(source, recipes)


def _recipes(loaded: Settings) -> set[str | None] | None:
    """Recipe names, with None among them if there is a default recipe; None if no yard answers."""
    with contextlib.closing(Client(home=loaded.home, start=False)) as client:
        try:
            known = client.recipes()
        except errors.RunyardError:
            return None
    return {name for recipe in known for name in (recipe["name"], *([None] if recipe["default"] else []))}


def _intake(source: RequestQueue, recipes: set[str | None] | None) -> Iterator[Finding]:
    def look(probe: Probe) -> Iterator[Finding]:
        yield finding(source.table, lambda: _queue(probe, source, recipes))
        yield finding(source.table, lambda: _put_aside(probe, source))

    return probed(source.table, lambda: broker_probe.of_source(source), look)


def _queue(probe: Probe, source: RequestQueue, recipes: set[str | None] | None) -> Said:
    queue, recipe = probe.requests(source.intake), source.intake.recipe
    if recipes is not None and recipe not in recipes:
        missing = f"recipe {recipe!r}" if recipe else "default recipe"
        return FAIL, f"there is no {missing}, so requests wait", f"runyard recipe add {recipe or 'NAME --default'} -f …"
    if queue is None:
        return WARN, f"queue {source.intake.queue} does not exist yet", "start the yard to create it: runyard up -d"
    said = f"queue {source.intake.queue}: {queue.messages} requests waiting, {queue.consumers} consumers"
    if not queue.consumers:
        return WARN, said, "start the yard, or look into its log: runyard up -d"
    return OK, said


def _put_aside(probe: Probe, source: RequestQueue) -> Said:
    dead = probe.dead_letters(source.intake)
    if dead is None or not dead.messages:
        return OK, "no message was rejected"
    queue, header = broker_probe.dead_letter_queue(source.intake), broker_probe.dead_letter_header()
    return (
        WARN,
        f"{dead.messages} rejected messages are in {queue}",
        f"read the reason in their header {header}, then correct the sender and purge that queue on the broker",
    )
