"""`runyard events`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli import output, selection, words
from runyard.client import Client


@click.command("events")
@click.argument("run", required=False)
@output.json_option
def command(run: str | None, as_json: bool) -> None:
    """Show what happened to a run, step by step.

    RUN is a number or last (which is meant when none is named).
    """
    events = selection.one(Client(start=False), [run] if run else []).events()

    def draw(console: Any) -> None:
        from runyard.cli import tables

        columns = (
            tables.Column(title="TIME", value=lambda event: words.local_time(event["at"])),
            tables.Column(title="ATTEMPT", value=lambda event: str(event["attempt"] or "-"), right=True),
            tables.Column(title="WHAT", value=lambda event: event["kind"], coloured=True),
            tables.Column(title="MORE", value=lambda event: words.one_line(event["message"] or ""), flexible=True),
        )
        console.print(tables.build(columns, events))

    output.writer(as_json).write(events, draw)
