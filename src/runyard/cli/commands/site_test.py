"""`runyard site test`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from runyard import errors, settings
from runyard.cli.show import output
from runyard.client import Client, find_yard
from runyard.model.site import SiteSpec


@click.command("test")
@click.argument("name")
@click.option("--no-probe", is_flag=True, help="Skip the probe job, which may have to wait in the queue.")
@output.json_option
def test(name: str, no_probe: bool, as_json: bool) -> int:
    """Check that a site works.

    Checks commands, versions, accounting, shared directory, interpreter, limits, and a probe run of at most a minute;
    with --kind ssh, for each node: login, interpreter, directory, slots and a probe. It checks from this machine, so
    run it where the site's agent runs. Exits with 1 if a check fails.
    """
    from runyard.app import node_relay, sites
    from runyard.cli.doctor import checks, verdicts

    described, loaded = _described(name), settings.load()
    node_relay.keep(name, described, loaded)
    found = [
        verdicts.Finding(check=item.name, verdict=_VERDICTS[item.ok], message=item.text, fix=item.fix)
        for item in sites.test(name, described, loaded, probe=not no_probe)
    ]
    found += _relay(described, loaded)
    shown = [dataclasses.asdict(finding) for finding in found]

    def draw(console: Any) -> None:
        checks.draw(console, found)

    output.writer(as_json).write(shown, draw)
    return int(any(finding.verdict == verdicts.FAIL for finding in found))


def _described(name: str) -> SiteSpec:
    try:
        return SiteSpec.parse(Client(start=False).site(name)["config"])
    except errors.Forbidden:  # the token of an agent, which may read only its own site
        from runyard.app import sites

        return sites.describe(find_yard.Finder.build(None, None, None, False, output.remark).find(), name)


def _relay(described: SiteSpec, loaded: settings.Settings) -> Iterator[Any]:
    from runyard.app import node_relay
    from runyard.cli.doctor import verdicts

    hindered = node_relay.obstacle(described, loaded) if node_relay.is_wanted(described) else ""
    if hindered:
        yield verdicts.Finding(check="relay", verdict="warn", message=f"relay=node has no effect: {hindered}")


_VERDICTS = {True: "ok", None: "warn", False: "fail"}
