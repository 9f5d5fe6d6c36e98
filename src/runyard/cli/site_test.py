"""`runyard site test`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from runyard import errors, settings
from runyard.cli import output
from runyard.client import Client, locate
from runyard.model.site import SSH, SiteSpec

if TYPE_CHECKING:
    from runyard.backends.base import Check


@click.command("test")
@click.argument("name")
@click.option("--no-probe", is_flag=True, help="Leave out the probe job, which may wait in the queue.")
@output.json_option
def test(name: str, no_probe: bool, as_json: bool) -> int:
    """Say what works at a site and what does not.

    Commands, versions, accounting, shared directory, interpreter, limits, and a probe run of a minute at most; of
    --kind ssh, for each node: login, interpreter, directory, slots and a probe. It looks from this machine, so run it
    where the site's agent runs. Exits with 1 when something does not work.
    """
    from runyard.cli import checks, node_relay, verdicts

    described, loaded = _described(name), settings.load()
    node_relay.keep(name, described, loaded)
    found = [
        verdicts.Finding(check=item.name, verdict=_VERDICTS[item.ok], message=item.text, fix=item.fix)
        for item in _checks(name, described, loaded, probe=not no_probe)
    ]
    found += _relay(described, loaded)
    shown = [dataclasses.asdict(finding) for finding in found]

    def draw(console: Any) -> None:
        checks.draw(console, found)

    output.writer(as_json).write(shown, draw)
    return int(any(finding.verdict == verdicts.FAIL for finding in found))


def _checks(name: str, described: SiteSpec, loaded: settings.Settings, *, probe: bool) -> list[Check]:
    from runyard.agent import sites
    from runyard.backends.batch.lifecycle import BatchBackend

    if described.kind == SSH:
        return [check for node in described.nodes() for check in _node_checks(name, described, loaded, node, probe)]
    backend = sites.backend(name, described, loaded)
    if not isinstance(backend, BatchBackend):
        raise errors.InvalidInput(f"site {name!r} is the machine its agent runs on", "check it with `runyard doctor`")
    return backend.site_test(probe=probe)


def _node_checks(name: str, described: SiteSpec, loaded: settings.Settings, node: str, probe: bool) -> list[Check]:
    from runyard.agent import sites

    with contextlib.closing(sites.node_backend(name, described, loaded, node)) as backend:
        return backend.site_test(probe=probe)


def _described(name: str) -> SiteSpec:
    try:
        return SiteSpec.parse(Client(start=False).site(name)["config"])
    except errors.Forbidden:  # the token of an agent, which may know its own site
        from runyard.agent.http import HttpLink

        target = locate.Finder.build(None, None, None, False, output.remark).find()
        with contextlib.closing(HttpLink(target.url, target.token, target.ca_file)) as link:
            return link.describe(name)


def _relay(described: SiteSpec, loaded: settings.Settings) -> Iterator[Any]:
    from runyard.cli import node_relay, verdicts

    hindered = node_relay.obstacle(described, loaded) if node_relay.is_wanted(described) else ""
    if hindered:
        yield verdicts.Finding(check="relay", verdict="warn", message=f"relay=node has no effect: {hindered}")


_VERDICTS = {True: "ok", None: "warn", False: "fail"}
