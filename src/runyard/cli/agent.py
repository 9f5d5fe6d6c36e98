"""`runyard agent`."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from runyard import errors, settings
from runyard.cli import output
from runyard.client import Client, locate
from runyard.model.spec import name_text

STAND_BY_S = 5.0  # between two tries of an agent that waits for its turn


@click.command("agent")
@click.option("--site", required=True, metavar="NAME", help="The site to serve; runs come here with --site NAME.")
@click.option("--dir", "directory", metavar="DIR", help="Where runs are kept (default: sites/NAME in the home).")
@click.option("--url", metavar="URL", help="The yard's address.  [RUNYARD_URL]")
@click.option("--token", metavar="TOKEN", help="An agent's token, better given as a variable.  [RUNYARD_TOKEN]")
@click.option("--node", metavar="NAME", help="What --node calls this machine (default: its name).  [RUNYARD_NODE]")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="K[=V]",
    help="A label of this machine, such as fast or rack=a. Repeatable.  [RUNYARD_LABELS]",
)
@click.option(
    "--only-project",
    "only_projects",
    multiple=True,
    metavar="P",
    help="Take only runs of this project. Repeatable.  [RUNYARD_ONLY_PROJECTS]",
)
@click.option(
    "--only-user",
    "only_users",
    multiple=True,
    metavar="U",
    help="Take only runs of this person. Repeatable.  [RUNYARD_ONLY_USERS]",
)
@click.option(
    "--spool",
    multiple=True,
    metavar="DIR",
    help="Look into this drop box, in which people without a token hand in runs. Repeatable.  [RUNYARD_SPOOL]",
)
@output.json_option
def command(
    site: str, directory: str | None, url: str | None, token: str | None, as_json: bool, **of_node: Any
) -> None:  # fmt: skip
    """Serve a site from this machine.

    It asks the yard for runs and has them executed as the site is described: on this machine, or by the scheduler of
    the cluster whose login node this is. It stops with Ctrl-C; what runs then goes on, and is found again at the next
    start. The yard's admin makes the token: runyard token create NAME --role agent --site SITE
    """
    if name_text(site, "--site") == "local":
        raise errors.InvalidInput("the site 'local' is served by the yard itself", "choose another name")
    finder = locate.Finder.build(url, token, None, False, output.remark)
    target = finder.find()
    Client(target.url, target.token).health()  # a wrong address or token is told now, not in a log
    place = Path(directory).expanduser().absolute() if directory else None
    _serve(_with_node(finder.settings, of_node), site, place, target, output.writer(as_json))


def _with_node(loaded: settings.Settings, given: Mapping[str, Any]) -> settings.Settings:
    """What the command line says of the node, over what the settings do."""
    said = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
    return settings.changed(loaded, said)


def _serve(
    loaded: settings.Settings, site: str, directory: Path | None, target: locate.Target, writer: output.Writer
) -> None:
    from runyard.agent import sites
    from runyard.agent.http import HttpLink
    from runyard.cli import away, brokering, node_relay, spools

    output.log_to_stderr(loaded.log_level)
    link = HttpLink(target.url, target.token, target.ca_file)
    described = away.describe(link, site, directory)
    with stopped_by_signals() as stop, contextlib.ExitStack() as held:
        if not _take_over(held, lambda: away.alone(site, described, loaded), stop):
            return
        node_relay.keep(site, described, loaded)
        agent = sites.build(brokering.with_tickets(link, site, loaded), site, described, loaded)
        said = f"agent {agent.name} serves {site} of {target.url}; Ctrl-C stops it"
        writer.write({"agent": agent.name, "site": site, "url": target.url}, lambda console: output.remark(said))
        with contextlib.closing(agent), spools.of_agent(site, described, loaded, target, stop):
            agent.run_forever(stop)
    if agent.stale:
        raise errors.Stale(f"another agent has taken over the site {site!r}", "a cluster needs one: stop one of them")
    output.remark("the agent has stopped; its runs go on")


def _take_over(
    held: contextlib.ExitStack, alone: Callable[[], AbstractContextManager[None]], stop: threading.Event
) -> bool:
    """A second agent stands by until the first is gone. False: it was stopped before."""
    told = False
    while not stop.is_set():
        try:
            held.enter_context(alone())
            return True
        except errors.SiteInUse as error:
            if not told:
                output.remark(f"{error.message}; standing by")
            told = True
        stop.wait(STAND_BY_S)
    return False


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """A handler interrupts whatever its thread is doing, and that may be this very event's `set` or `wait`: so there is
    none that does anything, and another thread hears of the signal through a pipe."""
    stop = threading.Event()
    heard, told = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(told, False)

    def listen() -> None:
        with os.fdopen(heard, "rb", buffering=0) as line:
            line.read(1)
        stop.set()

    threading.Thread(target=listen, name="agent-signals", daemon=True).start()
    descriptor = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    before = [(number, signal.signal(number, lambda *_: None)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield stop
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.close(told)
