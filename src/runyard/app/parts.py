"""The background parts of a yard: one list. A daemon runs each in its own thread; `runyard check` does each once.

A new part is a `Loop` and one line of `PARTS`.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from runyard import errors
from runyard.app import broker, drop_boxes, intakes, rodan, site_agents
from runyard.app.broker import Connections
from runyard.app.intakes import BrokerParts
from runyard.app.tick import Tick
from runyard.loop import Loop
from runyard.server.serve import Background
from runyard.yard import Yard
from runyard.yard.checkpoints.blob_cleanup import LATE_S, BlobCleanup
from runyard.yard.incoming.preparations import PREPARATIONS
from runyard.yard.incoming.requests import REPLIES
from runyard.yard.loops import DeadlineLoop, MetricsLoop


class Life(enum.Enum):
    """How long a yard runs."""

    DAEMON = "daemon"  # until it is stopped
    COMMAND = "command"  # as long as one command, in a home without a daemon
    CRON = "cron"  # for one tick
    NODE = "node"  # for one tick from a compute node, where a native job has ended


ALWAYS = frozenset(Life)
# A yard for one command leaves these to the next check: a broker's refusal must not prevent a user from listing runs.
# Compute nodes may neither reach other programs nor see drop boxes.
OTHERS = frozenset({Life.DAEMON, Life.CRON})


@dataclass(frozen=True, kw_only=True, slots=True)
class YardPart:
    loop: Background
    wakes_on: tuple[str, ...] = ()  # topics of hints after which it works at once
    once: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext  # in a tick: around the parts below it


@dataclass(frozen=True, kw_only=True)
class Builder:
    """The inputs of the parts."""

    yard: Yard
    life: Life
    connections: broker.Connections
    tick: Tick | None = None  # of a check

    @functools.cached_property
    def desks(self) -> list[BrokerParts]:
        """Raises ConfigError and BrokerRefused, before the first message is received."""
        return _open_broker_parts(self.yard, self.connections)

    def before(self, loop: Loop, drain: Callable[[float], None]) -> Callable[[], AbstractContextManager[None]]:
        """Do it before the parts below: the runs it submits are then started in the same tick."""

        @contextlib.contextmanager
        def once() -> Iterator[None]:
            if self._is_ours(loop):
                drain(self._deadline)
            yield

        return once

    def after(self, loop: Loop, *, passes: int | None = None) -> Callable[[], AbstractContextManager[None]]:
        """Do it after the parts below, until nothing is left to do: the ends they found are then reported in the same
        tick."""

        @contextlib.contextmanager
        def once() -> Iterator[None]:
            yield
            if self._is_ours(loop):
                _work_off(loop, self._deadline, passes)

        return once

    def _is_ours(self, loop: Loop) -> bool:
        return not loop.by_one or self.yard.fleet.may(loop.name)

    @property
    def _deadline(self) -> float:
        return self.tick.deadline if self.tick is not None else 0.0


def _work_off(loop: Loop, deadline: float, passes: int | None) -> None:
    """At least one pass, even at the end of a long tick."""
    done = 1
    while loop.tick() and done != passes and time.monotonic() < deadline:
        done += 1


# --- the parts --------------------------------------------------------------------------------------------------------


def _mirrors(builder: Builder) -> list[YardPart]:
    """Copy results to a shared directory."""
    from runyard.yard.outgoing import mirror

    yard = builder.yard
    loops = mirror.loops(yard.settings, yard.store, yard.blob_store)
    return [YardPart(loop=loop, wakes_on=("run:",), once=builder.after(loop)) for loop in loops]


def _listeners(builder: Builder) -> list[YardPart]:
    """Send events to webhooks and to the broker."""
    found = broker.listeners(builder.yard, builder.connections)
    return [YardPart(loop=loop, wakes_on=("site:", "run:"), once=builder.after(loop)) for loop in found]


def _replies(builder: Builder) -> list[YardPart]:
    """Reply to requests received through a broker."""
    loops = [desk.replies for desk in builder.desks]
    return [YardPart(loop=loop, wakes_on=(REPLIES, "run:"), once=builder.after(loop)) for loop in loops]


def _requests(builder: Builder) -> list[YardPart]:
    """Receive requests from brokers, and fetch their files."""
    found = []
    for desk in builder.desks:
        found += [YardPart(loop=one, once=builder.before(one, one.drain)) for one in desk.receptions]
        found += [
            YardPart(loop=one, wakes_on=(PREPARATIONS,), once=builder.before(one, one.drain)) for one in desk.fetchers
        ]
    return found


def _tickets(builder: Builder) -> list[YardPart]:
    """Announce work to agents through the broker."""
    return [YardPart(loop=office, wakes_on=("site:",)) for office in broker.offices(builder.yard, builder.connections)]


def _drop_boxes(builder: Builder) -> list[YardPart]:
    """Submit runs from drop boxes, and write their states there."""
    settings = builder.yard.settings
    if builder.life is not Life.DAEMON and not drop_boxes.is_waiting(settings):
        return []
    return [YardPart(loop=spool, once=spool.passing) for spool in drop_boxes.of_yard(builder.yard)]


def _clearing(builder: Builder) -> list[YardPart]:
    """Delete blobs of expired checkpoints."""
    loop = BlobCleanup(builder.yard, 0.0 if builder.life is Life.DAEMON else LATE_S)
    return [YardPart(loop=loop, once=builder.after(loop, passes=1))]


def _progress(builder: Builder) -> list[YardPart]:
    """Read metrics, and let sweeps decide on their next runs."""
    loop = MetricsLoop(builder.yard)
    return [YardPart(loop=loop, once=builder.after(loop))]


def _clock(builder: Builder) -> list[YardPart]:
    """Leases and deadlines."""
    loop = DeadlineLoop(builder.yard)
    return [YardPart(loop=loop, once=builder.after(loop))]


def _sites(builder: Builder) -> list[YardPart]:
    """The sites that this yard's process serves."""

    @contextlib.contextmanager
    def once() -> Iterator[None]:
        yield
        if builder.tick is not None:
            site_agents.serve_once(builder.yard, builder.tick)

    return [YardPart(loop=site_agents.Agents(builder.yard), once=once)]


# A tick enters them from the first to the last, and leaves them from the last to the first.
PARTS: tuple[tuple[Callable[[Builder], list[YardPart]], frozenset[Life]], ...] = (
    (_mirrors, OTHERS),
    (_listeners, OTHERS),
    (_replies, OTHERS),
    (_tickets, frozenset({Life.DAEMON})),
    (_requests, OTHERS),
    (_drop_boxes, OTHERS),
    (_clearing, ALWAYS - {Life.NODE}),  # a job waits for the tick of its node
    (_progress, ALWAYS),
    (_clock, ALWAYS),
    (_sites, ALWAYS),
)


# --- all of them ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def for_threads(yard: Yard, life: Life) -> Iterator[list[Background]]:
    """For a daemon: each part is woken by its hints. Raises ConfigError and BrokerRefused."""
    with contextlib.ExitStack() as stack:
        connections = stack.enter_context(contextlib.closing(broker.Connections()))
        builder = Builder(yard=yard, life=life, connections=connections)
        parts = [part for build, lives in PARTS if life in lives for part in build(builder)]
        for part in parts:
            _listen(yard, stack, part)
        yield [part.loop for part in parts]


def do_once(yard: Yard, tick: Tick) -> None:
    """One tick. Runs are served despite errors of other parts, which are raised at the end."""
    life = Life.CRON if tick.ended is None else Life.NODE
    wrong: list[errors.RunyardError] = []
    with contextlib.closing(broker.Connections()) as connections:
        builder = Builder(yard=yard, life=life, connections=connections, tick=tick)
        with contextlib.ExitStack() as stack:
            for build, lives in PARTS:
                if life in lives:
                    _enter(stack, build, builder, wrong)
    if wrong:
        raise wrong[0]


def _enter(
    stack: contextlib.ExitStack,
    build: Callable[[Builder], list[YardPart]],
    builder: Builder,
    wrong: list[errors.RunyardError],
) -> None:
    try:
        for part in build(builder):
            stack.enter_context(part.once())
    except (errors.BrokerRefused, errors.ConfigError) as error:
        wrong.append(error)


def _listen(yard: Yard, stack: contextlib.ExitStack, part: YardPart) -> None:
    if isinstance(part.loop, Loop):
        for topic in part.wakes_on:
            stack.callback(yard.hints.listen(topic, part.loop.ring))


def _open_broker_parts(yard: Yard, connections: Connections) -> list[BrokerParts]:
    """Raises ConfigError and BrokerRefused, before the first message is received."""
    bridge, named = rodan.find(yard.settings), intakes.of(yard.settings)
    every = [*named, bridge.source] if bridge is not None else named
    if not every:  # and the library for brokers may not even be there
        return []
    intakes.refuse_shared(every)
    intakes.secure_all(every, connections)
    desks = intakes.desks(yard, connections, named)
    return [*desks, rodan.desk(yard, connections, bridge)] if bridge is not None else desks
