"""`runyard show`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.input import selection
from runyard.cli.show import output
from runyard.client import Client


@click.command("show")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@output.json_option
def command(runs: tuple[str, ...], as_json: bool) -> None:
    """Show the details of a run, and what to do next.

    RUN is a number, a range such as 3-9, or last (the default).
    """
    client = Client(start=False)
    found = [{**run.refresh().data, "metrics": run.reported()} for run in selection.select(client, runs or ("last",))]

    def draw(console: Any) -> None:
        from runyard.cli.show import run_page

        for index, run in enumerate(found):
            console.print() if index else None
            run_page.draw(console, run)

    output.writer(as_json).write(found[0] if len(found) == 1 else found, draw)
