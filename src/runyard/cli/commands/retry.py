"""`runyard retry`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.input import selection
from runyard.cli.show import change_report, output
from runyard.client import Client


@click.command("retry")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--resume", is_flag=True, help="Only runs that have a checkpoint to resume from.")
@click.option("--afresh", is_flag=True, help="Discard checkpoints and start from the beginning.")
@selection.filter_options
@output.quiet_option
@output.json_option
def command(
    runs: tuple[str, ...], resume: bool, afresh: bool, quiet: bool, as_json: bool, **given: Any
) -> int:  # fmt: skip
    """Queue finished runs again.

    They resume from their checkpoint in $CHECKPOINT_DIR, if they have one.

    RUN is a number, a range such as 3-9, or last. With --state, --project, --tag, … it means all matching runs;
    without --state, failed ones.
    """
    client = Client(notify=output.remark)
    found = selection.select(client, runs, given, states=("failed",))
    outcome = change_report.ChangeOutcome.split(client.retry((run.id for run in found), resume=resume, afresh=afresh))
    writer = output.writer(as_json, quiet)
    return outcome.tell(writer, lambda run: f"run {run.id} {run.state} again", "no runs to retry")
