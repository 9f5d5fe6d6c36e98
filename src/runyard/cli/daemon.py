"""The yard as one process: home, store, agent of this machine and HTTP, put together."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator

from runyard import errors, home
from runyard.cli import brokering, output, outside, spools
from runyard.cli.serving import THIS_MACHINE, Agents
from runyard.hosts import local
from runyard.server import address
from runyard.server.serve import serve
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.clearing import LATE_S, Clearing
from runyard.yard.progress import Progress

SWITCH_S = 0.0005  # how long one thread may keep the others waiting: a free slot waits for the agent's
TURN_S = 60.0  # how long a command without a daemon waits for others to finish


def run(settings: Settings, *, port_chosen: bool, on_listening: Callable[[str], None]) -> None:
    """Own the home and answer until SIGTERM or SIGINT; raises HomeInUse, Conflict (port), ConfigError."""
    home.refuse_daemon(settings)
    with home.lock(settings):
        _run(settings if port_chosen else _with_free_port(settings), on_listening, threading.Event())


def run_attached(settings: Settings, *, on_listening: Callable[[str], None]) -> None:
    """A yard for one command: it waits for its turn, and ends when the command closes our standard input."""
    with home.lock(settings, wait=TURN_S):
        stop = threading.Event()
        threading.Thread(target=_stop_at_end_of_input, args=(stop,), name="attached", daemon=True).start()
        _run(dataclasses.replace(settings, port=0), on_listening, stop, passing=True)


def _run(
    settings: Settings, on_listening: Callable[[str], None], stop: threading.Event, *, passing: bool = False
) -> None:
    output.log_to_stderr(settings.log_level)
    sys.setswitchinterval(SWITCH_S)
    with opened(settings) as yard, _others(yard, passing) as others:
        own = [Agents(yard), Progress(yard), Clearing(yard, LATE_S if passing else 0.0)]
        serve(yard, [*own, *others], stop=stop, on_listening=on_listening)


@contextlib.contextmanager
def _others(yard: Yard, passing: bool) -> Iterator[list[outside.Part]]:
    """What has to do with brokers and other programs. A yard that is there for one command leaves it to the next check:
    a broker that says no must not keep a person from seeing the runs."""
    if passing:
        yield []
        return
    with (
        contextlib.closing(brokering.Connections()) as connections,
        brokering.offices(yard, connections) as offices,
        outside.parts(yard, connections) as parts,
    ):
        yield [*offices, *parts, *spools.of_yard(yard)]


def _stop_at_end_of_input(stop: threading.Event) -> None:
    sys.stdin.buffer.read()
    stop.set()


@contextlib.contextmanager
def opened(settings: Settings, *, at_home: bool = True, passing: bool = False) -> Iterator[Yard]:
    """The yard of a home that is ours, with the site that this machine is, unless it is not to be one. `passing`: for
    one tick, and no background part."""
    yard = Yard.open(settings, network=home.is_on_network(settings), passing=passing)
    try:
        if at_home and settings.local_site != "off":
            _describe_site(yard)
        yield yard
    finally:
        yard.close()


def _with_free_port(settings: Settings) -> Settings:
    """Nobody asked for the usual port, so another one will do: people who share a machine need not arrange it."""
    try:
        address.bind(settings).close()
    except errors.Conflict:
        output.remark(f"port {settings.port} is taken by another program; using a free one")
        return dataclasses.replace(settings, port=0)
    return settings


def _describe_site(yard: Yard) -> None:
    """On a login node nobody trains by accident: the site takes only runs that name it."""
    note = _why_named(yard.settings)
    yard.places.ensure(THIS_MACHINE, "local", explicit=bool(note), note=note).result()


def _why_named(settings: Settings) -> str:
    if settings.local_site == "named":
        return f"local_site is set to named: runs execute on the yard's own machine only with --site {THIS_MACHINE}"
    scheduler = local.detect_scheduler()
    if scheduler is None:
        return ""
    return (
        f"{scheduler} answers on this machine, so it is a login node: add the cluster as a site (runyard site add NAME "
        f"--kind {scheduler}); runs execute here only with --site {THIS_MACHINE}"
    )


def port_was_chosen(settings: Settings, flag: int | None) -> bool:
    return flag is not None or bool(os.environ.get("RUNYARD_PORT")) or settings.port != Settings.port
