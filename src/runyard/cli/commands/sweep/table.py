"""`runyard sweep table`."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import Any

import click

from runyard import errors
from runyard.cli.commands.sweep import bests, views
from runyard.cli.show import formats, output
from runyard.client import Client
from runyard.model import template


@click.command("table", short_help="Show all configurations of a sweep, best first.")
@click.argument("sweep")
@bests.judging_options
@click.option("--runs", "each", is_flag=True, help="One row per run instead of per configuration.")
@click.option("--csv", "as_csv", is_flag=True, help="Print it as CSV.")
@output.json_option
def command(sweep: str, each: bool, as_csv: bool, as_json: bool, **given: Any) -> None:
    """Show all configurations of a sweep, best first: mean ± half of the 95 % interval over N repetitions."""
    if as_csv and as_json:
        raise errors.InvalidInput("--csv and --json exclude each other", "give one of them")
    found = Client(start=False).find_sweep(sweep)
    own = views.objective(found.data)
    wanted = bests.objective(given, own) if given["metric"] or own else None
    trials = bests.measured(found, wanted) if wanted else found.trials()
    rows = [bests.plain(row) for trial in trials for row in (trial.run_rows() if each else [trial.row()])]

    def draw(console: Any) -> None:
        from runyard.cli.commands.sweep import grids

        build = grids.of_runs if each else grids.of_trials
        console.print(build(trials, wanted.metric if wanted else None))

    if as_csv:
        write_csv(rows)
    else:
        output.writer(as_json).write(rows, draw)
    if wanted and given["metric"] and all(trial.value is None and trial.reached is None for trial in trials):
        output.remark(f"no run of sweep {found.label} has reported {formats.one_line(wanted.metric)}")


def write_csv(rows: Sequence[dict[str, Any]]) -> None:
    """Strings as they are, other values as JSON, an empty cell for a missing value."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if row.get(name) is None else template.show_value(row[name]) for name in names])
