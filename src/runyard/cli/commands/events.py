"""`runyard events`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from runyard.cli.input import selection
from runyard.cli.show import formats, output
from runyard.client import Client

if TYPE_CHECKING:
    from rich.table import Table


@click.command("events")
@click.argument("run", required=False)
@output.json_option
def command(run: str | None, as_json: bool) -> None:
    """Show what happened to a run, step by step.

    RUN is a number or last (the default).
    """
    events = selection.one(Client(start=False), [] if run is None else [run]).events()
    output.writer(as_json).write(events, lambda console: console.print(table(events)))


def table(events: list[dict[str, Any]]) -> Table:
    from runyard.cli.show import tables

    return tables.build(
        (
            tables.Column(title="TIME", value=lambda event: formats.local_time(event["at"])),
            tables.Column(title="ATTEMPT", value=lambda event: str(event["attempt"] or "-"), right=True),
            tables.Column(title="WHAT", value=lambda event: event["kind"], coloured=True),
            tables.Column(title="MORE", value=_more, flexible=True, wrapped=True),
        ),
        events,
    )


def _more(event: Mapping[str, Any]) -> str:
    return formats.one_line(event["message"] or "")
