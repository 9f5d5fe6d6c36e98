"""`runyard site test`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from runyard import errors, settings
from runyard.cli import output
from runyard.client import Client
from runyard.model.site import SiteSpec


@click.command("test")
@click.argument("name")
@click.option("--no-probe", is_flag=True, help="Leave out the probe job, which may wait in the queue.")
@output.json_option
def test(name: str, no_probe: bool, as_json: bool) -> int:
    """Say what works at a site and what does not.

    Commands, versions, accounting, shared directory, interpreter, limits, and a probe run of a minute at most. It looks
    from this machine, so run it where the site's agent runs. Exits with 1 when something does not work.
    """
    from runyard.agent import sites
    from runyard.backends.batch.lifecycle import BatchBackend
    from runyard.cli import checks

    described = SiteSpec.parse(Client(start=False).site(name)["config"])
    backend = sites.backend(name, described, settings.load())
    if not isinstance(backend, BatchBackend):
        raise errors.InvalidInput(f"site {name!r} is the machine its agent runs on", "check it with `runyard doctor`")
    found = [
        checks.Finding(check=item.name, verdict=_VERDICTS[item.ok], message=item.text, fix=item.fix)
        for item in backend.site_test(probe=not no_probe)
    ]
    shown = [dataclasses.asdict(finding) for finding in found]

    def draw(console: Any) -> None:
        checks.draw(console, found)

    output.writer(as_json).write(shown, draw)
    return int(any(finding.verdict == checks.FAIL for finding in found))


_VERDICTS = {True: "ok", None: "warn", False: "fail"}
