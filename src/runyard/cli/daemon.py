"""The yard as one process: home, store, agent of this machine and HTTP, put together."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Iterator

from runyard import errors, home
from runyard.agent import local as local_agent
from runyard.cli import output
from runyard.hosts import local
from runyard.server import address
from runyard.server.embedded import DirectLink
from runyard.server.serve import Background, serve
from runyard.settings import Settings
from runyard.yard import Yard

SITE = "local"


def run(settings: Settings, *, port_chosen: bool, on_listening: Callable[[str], None]) -> None:
    """Own the home and answer until SIGTERM or SIGINT; raises HomeInUse, Conflict (port), ConfigError."""
    log_to_stderr(settings.log_level)
    home.refuse_daemon(settings)
    with home.lock(settings), _opened(settings if port_chosen else _with_free_port(settings)) as yard:
        _describe_site(yard)
        serve(yard, [_agent(yard)], on_listening=on_listening)


def log_to_stderr(level: str) -> None:
    """Ours at the level that was asked for; of the libraries only what is wrong."""
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    logging.getLogger("runyard").setLevel(level.upper())


@contextlib.contextmanager
def _opened(settings: Settings) -> Iterator[Yard]:
    yard = Yard.open(settings)
    try:
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
    scheduler = local.detect_scheduler()
    note = (
        f"{scheduler} answers on this machine, so it is a login node: the cluster is the site to add, and runs execute "
        f"here only with --site {SITE}"
        if scheduler
        else ""
    )
    yard.ensure_site(SITE, "local", explicit=scheduler is not None, note=note).result()


def _agent(yard: Yard) -> Background:
    def agent(stop: threading.Event) -> None:
        local_agent.serve(DirectLink(yard, yard.owner()), yard.settings, stop, SITE)

    return agent


def port_was_chosen(settings: Settings, flag: int | None) -> bool:
    return flag is not None or bool(os.environ.get("RUNYARD_PORT")) or settings.port != Settings.port
