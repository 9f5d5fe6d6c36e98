"""`runyard best`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.commands.sweep import bests
from runyard.cli.input import selection
from runyard.cli.show import output
from runyard.client import Client
from runyard.model import selectors


@click.command("best")
@click.argument("runs", nargs=-1, metavar="[RUN]... | SWEEP")
@selection.filter_options
@bests.metric_options
@output.quiet_option
@output.json_option
def command(runs: tuple[str, ...], quiet: bool, as_json: bool, **given: Any) -> None:
    """Show the best run of several or of a sweep, and where its outputs are.

    \b
      runyard best S1
      runyard best 40-57 --metric val/acc --maximize
      runyard best --project digits --metric val/loss
    """
    client = Client(start=False)
    writer = output.writer(as_json, quiet)
    named = selectors.parse_selectors(runs).sweep
    if named is not None:
        bests.of_sweep(selection.sweep(client, named), given, writer)
    else:
        wanted = bests.objective(given)
        bests.of_runs(selection.select(client, runs, given), wanted, given["limit"], writer)
