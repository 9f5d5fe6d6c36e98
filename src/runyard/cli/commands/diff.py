"""`runyard diff`."""

from __future__ import annotations

from typing import Any

import click

from runyard import errors
from runyard.cli.input import selection
from runyard.cli.show import output
from runyard.client import Client


@click.command("diff")
@click.argument("runs", nargs=-1, metavar="RUN RUN")
@click.option("--no-lines", is_flag=True, help="List the files that differ, without their lines.")
@output.json_option
def command(runs: tuple[str, ...], no_lines: bool, as_json: bool) -> None:
    """Show what differs between two runs.

    Compares parameters, command, environment, seed, code, data, packages, resources and site, then the results: final
    state, last metrics, outputs. Values of variables whose names contain token, key or password are not shown.
    """
    from runyard.client.compare import compare_runs

    client = Client(start=False)
    found = selection.select(client, runs) if runs else []
    if len(found) != 2:
        raise errors.InvalidInput(f"diff needs two runs, not {len(found)}", "name two: runyard diff 42 57")
    comparison = compare_runs(client, *(run.id for run in found))

    def draw(console: Any) -> None:
        from runyard.cli.show import diff_page

        diff_page.draw(console, comparison, lines=not no_lines)

    output.writer(as_json).write(comparison.to_json(), draw)
