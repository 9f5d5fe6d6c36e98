"""The yard as one process: home, store, agent of this machine and HTTP."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator

from runyard import errors, home
from runyard.app import logs, parts
from runyard.app.parts import Life
from runyard.app.site_agents import THIS_MACHINE
from runyard.hosts import local
from runyard.server import address
from runyard.server.serve import serve
from runyard.settings import Settings
from runyard.yard import Yard

SWITCH_S = 0.0005  # thread switch interval: free slots wait for the agent's thread
TURN_S = 60.0  # how long a command without a daemon waits for others to finish


def run(
    settings: Settings, *, port_chosen: bool, on_listening: Callable[[str], None], notify: Callable[[str], None]
) -> None:
    """Lock the home and serve until SIGTERM or SIGINT; raises HomeInUse, Conflict (port), ConfigError."""
    home.refuse_daemon(settings)
    with home.lock(settings):
        chosen = settings if port_chosen else _with_free_port(settings, notify)
        _run(chosen, Life.DAEMON, on_listening, threading.Event())


def run_attached(settings: Settings, *, on_listening: Callable[[str], None]) -> None:
    """A yard for one command: it waits for the lock, and ends when the command closes our standard input."""
    with home.lock(settings, wait=TURN_S):
        stop = threading.Event()
        threading.Thread(target=_stop_at_end_of_input, args=(stop,), name="attached", daemon=True).start()
        _run(dataclasses.replace(settings, port=0), Life.COMMAND, on_listening, stop)


def _run(settings: Settings, life: Life, on_listening: Callable[[str], None], stop: threading.Event) -> None:
    logs.to_stderr(settings.log_level)
    sys.setswitchinterval(SWITCH_S)
    with opened(settings) as yard, parts.for_threads(yard, life) as background:
        serve(yard, background, stop=stop, on_listening=on_listening)


def _stop_at_end_of_input(stop: threading.Event) -> None:
    sys.stdin.buffer.read()
    stop.set()


@contextlib.contextmanager
def opened(settings: Settings, *, at_home: bool = True, passing: bool = False) -> Iterator[Yard]:
    """The yard of a locked home, with the site of this machine if `at_home`. `passing`: for one tick, without
    background parts."""
    yard = Yard.open(settings, network=home.is_on_network(settings), passing=passing)
    try:
        if at_home and settings.local_site != "off":
            _describe_site(yard)
        yield yard
    finally:
        yard.close()


def _with_free_port(settings: Settings, notify: Callable[[str], None]) -> Settings:
    """If the default port is in use, choose another one, so that users of one machine need not agree on ports."""
    try:
        address.bind(settings).close()
    except errors.Conflict:
        notify(f"port {settings.port} is used by another program; using a free one")
        return dataclasses.replace(settings, port=0)
    return settings


def _describe_site(yard: Yard) -> None:
    """On a login node, the site accepts only runs that name it, so that no run executes there by accident."""
    note = _why_named(yard.settings)
    yard.sites.ensure(THIS_MACHINE, "local", explicit=bool(note), note=note).result()


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
