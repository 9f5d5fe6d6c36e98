"""`runyard agent`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import click

from runyard import errors, settings
from runyard.cli import output
from runyard.client import Client, locate
from runyard.model.site import SiteSpec
from runyard.model.spec import name_text


@click.command("agent")
@click.option("--site", required=True, metavar="NAME", help="The site to serve; runs come here with --site NAME.")
@click.option("--dir", "directory", metavar="DIR", help="Where runs are kept (default: sites/NAME in the home).")
@click.option("--url", metavar="URL", help="The yard's address.  [RUNYARD_URL]")
@click.option("--token", metavar="TOKEN", help="An agent's token, better given as a variable.  [RUNYARD_TOKEN]")
@output.json_option
def command(site: str, directory: str | None, url: str | None, token: str | None, as_json: bool) -> None:
    """Serve a site from this machine.

    It asks the yard for runs and has them executed as the site is described: on this machine, or by the scheduler of
    the cluster whose login node this is. It stops with Ctrl-C; what runs then goes on, and is found again at the next
    start. The yard's admin makes the token: runyard token create NAME --role agent --site SITE
    """
    loaded = settings.load()
    if name_text(site, "--site") == "local":
        raise errors.InvalidInput("the site 'local' is served by the yard itself", "choose another name")
    target = locate.Finder.build(url, token, None, False, output.remark).find()
    Client(target.url, target.token).health()  # a wrong address or token is told now, not in a log
    _serve(loaded, site, directory, target, output.writer(as_json))


def _serve(
    loaded: settings.Settings, site: str, directory: str | None, target: locate.Target, writer: output.Writer
) -> None:
    from runyard.agent import sites
    from runyard.agent.http import HttpLink
    from runyard.cli import daemon

    daemon.log_to_stderr(loaded.log_level)
    link = HttpLink(target.url, target.token)
    agent = sites.build(link, site, _at(link.describe(site), directory), loaded)
    said = f"agent {agent.name} serves {site} of {target.url}; Ctrl-C stops it"
    writer.write({"agent": agent.name, "site": site, "url": target.url}, lambda console: output.remark(said))
    with contextlib.closing(agent), _stopped_by_signals() as stop:
        agent.run_forever(stop)
    if agent.stale:
        raise errors.Stale("another agent with this directory has taken over", "each agent needs a --dir of its own")
    output.remark("the agent has stopped; its runs go on")


def _at(described: SiteSpec, directory: str | None) -> SiteSpec:
    if directory is None:
        return described
    return dataclasses.replace(described, dir=os.fspath(Path(directory).expanduser().absolute()))


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        stop.set()

    before = [(number, signal.signal(number, on_signal)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield stop
    finally:
        for number, handler in before:
            signal.signal(number, handler)
