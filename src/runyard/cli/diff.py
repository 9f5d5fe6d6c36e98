"""`runyard diff`."""

from __future__ import annotations

from typing import Any

import click

from runyard import errors
from runyard.cli import output, selection
from runyard.client import Client


@click.command("diff")
@click.argument("runs", nargs=-1, metavar="RUN RUN")
@click.option("--no-lines", is_flag=True, help="Name the files that differ, without their lines.")
@output.json_option
def command(runs: tuple[str, ...], no_lines: bool, as_json: bool) -> None:
    """Show what differs between two runs.

    Parameters, command, environment, seed, code, data, packages, resources and place; and what came of it: the ending,
    the last metrics, the outputs. Values of variables whose names speak of a token, a key or a password are not shown.
    """
    from runyard.client.compare import compare_runs

    client = Client(start=False)
    found = selection.select(client, runs) if runs else []
    if len(found) != 2:
        raise errors.InvalidInput(f"two runs are compared, not {len(found)}", "name two: runyard diff 42 57")
    comparison = compare_runs(client, *found)

    def draw(console: Any) -> None:
        from runyard.cli import diff_page

        diff_page.draw(console, comparison, lines=not no_lines)

    output.writer(as_json).write(comparison.to_json(), draw)
