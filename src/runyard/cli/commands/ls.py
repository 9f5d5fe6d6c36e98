"""`runyard ls`."""

from __future__ import annotations

import shlex
from typing import Any

import click

from runyard.cli.commands import drop_box
from runyard.cli.input import selection
from runyard.cli.show import output
from runyard.client import Client

LIMIT = 50


@click.command("ls")
@selection.filter_options
@click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", default=LIMIT, show_default=True, help="How many to show."
)
@click.option("--before", type=int, metavar="ID", help="Older than this run: the next page.")
@drop_box.option
@output.quiet_option
@output.json_option
def command(limit: int, before: int | None, via_box: str | None, quiet: bool, as_json: bool, **given: Any) -> None:
    """List runs, newest first."""
    if via_box:
        drop_box.refuse({"before": before, **given})
        drop_box.ls(via_box, output.writer(as_json, quiet))
        return
    filters = selection.query(given)
    found = Client(start=False).runs(limit=limit + 1, before=before, **filters)
    runs, more = found[:limit], len(found) > limit

    def draw(console: Any) -> None:
        from runyard.cli.show import tables

        if runs:
            console.print(tables.build(tables.RUN_COLUMNS, [run.data for run in runs]))
        else:
            filtered = any(filters.values()) or before
            output.remark("no runs match" if filtered else "no runs yet: runyard submit -- python train.py")

    output.writer(as_json, quiet).write([run.data for run in runs], draw, [run.id for run in runs])
    if more and not quiet:
        shown = ["--limit", str(limit)] if limit != LIMIT else []
        output.remark(
            f"more: {shlex.join(['runyard', 'ls', *selection.as_words(given), *shown])} --before {runs[-1].id}"
        )
