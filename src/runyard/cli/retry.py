"""`runyard retry`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli import changes, output, selection
from runyard.client import Client


@click.command("retry")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--resume", is_flag=True, help="Only runs that have saved something: they go on from there.")
@click.option("--afresh", is_flag=True, help="Discard what they saved, and start from the beginning.")
@selection.filter_options
@output.quiet_option
@output.json_option
def command(
    runs: tuple[str, ...], resume: bool, afresh: bool, quiet: bool, as_json: bool, **given: Any
) -> int:  # fmt: skip
    """Queue ended runs again.

    They go on from what they saved in $CHECKPOINT_DIR, if anything.

    RUN is a number, a range such as 3-9, or last. With --state, --project, --tag, … it means the runs that match;
    without --state, those that failed.
    """
    client = Client(notify=output.remark)
    found = selection.select(client, runs, given, states=("failed",))
    outcome = changes.Outcome.split(client.retry((run.id for run in found), resume=resume, afresh=afresh))
    writer = output.writer(as_json, quiet)
    return outcome.tell(writer, lambda run: f"run {run.id} {run.state} again", "no runs to retry")
