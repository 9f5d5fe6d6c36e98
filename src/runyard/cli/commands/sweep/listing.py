"""`runyard sweep list`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.commands.sweep import views
from runyard.cli.show import formats, output
from runyard.client import Client


@click.command("list")
@click.option("--project", metavar="NAME", help="Only of this project.")
@click.option("--owner", metavar="NAME", help="Only of this user.")
@click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", default=50, show_default=True, help="How many to show."
)
@click.option("--before", type=int, metavar="NUMBER", help="Older than this sweep: the next page.")
@output.quiet_option
@output.json_option
def command(quiet: bool, as_json: bool, **given: Any) -> None:
    """List sweeps, newest first."""
    sweeps = Client(start=False).sweeps(**{name: value for name, value in given.items() if value is not None})
    rows = [sweep.data for sweep in sweeps]

    def draw(console: Any) -> None:
        if rows:
            console.print(_table(rows))
        else:
            output.remark("no sweeps: runyard sweep --param lr=0.1,0.01 -- python train.py --lr {lr}")

    output.writer(as_json, quiet).write(rows, draw, [sweep.label for sweep in sweeps])


def _table(rows: list[dict[str, Any]]) -> Any:
    from runyard.cli.show import tables

    columns = (
        tables.Column(title="SWEEP", value=lambda sweep: f"S{sweep['id']}"),
        tables.Column(title="STATE", value=lambda sweep: sweep["state"], coloured=True),
        tables.Column(title="NAME", value=_name, flexible=True),
        tables.Column(title="PROJECT", value=lambda sweep: sweep["project"], boring=("default",)),
        tables.Column(title="METHOD", value=lambda sweep: sweep["method"]),
        tables.Column(title="DONE", value=views.done, right=True),
        tables.Column(title="BEST", value=_best, right=True, boring=("-",)),
        tables.Column(title="AGE", value=lambda sweep: formats.ago(sweep["created_at"]), right=True),
    )
    return tables.build(columns, rows)


def _name(sweep: Any) -> str:
    return formats.one_line(sweep["name"] or formats.command_line(sweep["document"]["command"]))


def _best(sweep: Any) -> str:
    from runyard.client import Trial

    return views.interval(Trial.from_json(sweep["best"])) if sweep["best"] else "-"
