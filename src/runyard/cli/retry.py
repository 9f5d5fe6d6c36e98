"""`runyard retry`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli import changes, output, selection
from runyard.client import Client


@click.command("retry")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@output.quiet_option
@output.json_option
def command(runs: tuple[str, ...], quiet: bool, as_json: bool, **given: Any) -> int:
    """Queue ended runs again.

    RUN is a number, a range such as 3-9, or last. With --state, --project, --tag, … it means the runs that match;
    without --state, those that failed.
    """
    client = Client(notify=output.remark)
    found = selection.select(client, runs, given, states=("failed",))
    outcome = changes.Outcome.split(client.retry(run.id for run in found))
    writer = output.writer(as_json, quiet)
    return outcome.tell(writer, lambda run: f"run {run.id} {run.state} again", "no runs to retry")
