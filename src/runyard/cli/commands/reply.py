"""`runyard reply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from runyard import errors
from runyard.cli.input.command_groups import BareGroup
from runyard.cli.show import formats, output
from runyard.client import Client


@click.group("reply", cls=BareGroup, bare="list")
def command() -> None:
    """List and resend replies to other programs.

    Programs that send requests through the broker get a reply when their runs have finished. A reply that cannot be
    delivered is retried, and can be resent for seven days. Without a subcommand it lists the replies.
    """


@command.command("list")
@click.option("--queue", metavar="NAME", help="Only requests of this intake.")
@click.option("--unanswered", is_flag=True, help="Only requests whose reply has not been sent.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="How many to show (default 50).")
@output.quiet_option
@output.json_option
def list_replies(queue: str | None, unanswered: bool, limit: int, quiet: bool, as_json: bool) -> None:
    """List requests received through the broker, newest first, with the state of their replies."""
    wanted = {"queue": queue, "unanswered": "true" if unanswered else None, "limit": limit}
    found = Client(start=False).replies(**{name: value for name, value in wanted.items() if value is not None})

    def draw(console: Any) -> None:
        from runyard.cli.show import tables

        columns = (
            tables.Column(title="ID", value=lambda row: str(row["id"]), right=True),
            tables.Column(title="QUEUE", value=lambda row: row["queue"]),
            tables.Column(title="CORRELATION", value=lambda row: _line(row["correlation_id"]), boring=("-",)),
            tables.Column(title="RUNS", value=_runs),
            tables.Column(title="STATE", value=lambda row: row["state"], coloured=True),
            tables.Column(title="AGE", value=lambda row: formats.ago(row["received_at"]), right=True),
            tables.Column(title="TRIES", value=lambda row: str(row["tries"] or "-"), right=True, boring=("-",)),
            tables.Column(title="MORE", value=_more, flexible=True, boring=("-",)),
        )
        console.print(tables.build(columns, found))

    output.writer(as_json, quiet).write(found, draw, [str(row["id"]) for row in found])


@command.command("resend")
@click.argument("ids", nargs=-1, type=click.IntRange(1), metavar="[ID]...")
@click.option("--queue", metavar="NAME", help="All replies of this intake that are still kept.")
@output.json_option
def resend(ids: tuple[int, ...], queue: str | None, as_json: bool) -> None:
    """Resend replies by their numbers in `reply list`."""
    if bool(ids) == (queue is not None):
        raise errors.InvalidInput("give either request numbers or --queue", "such as `runyard reply resend 7`")
    again = Client(start=False).resend_replies(ids, queue)
    said = f"resent: {', '.join(map(str, again))}" if again else "there is nothing to resend"
    output.writer(as_json).write({"ids": again}, lambda _: click.echo(said))


def _line(text: str | None) -> str:
    return formats.one_line(text) if text else "-"


def _runs(row: Mapping[str, Any]) -> str:
    if row["runs"] is None:
        return "-"
    first, last = row["runs"]
    return str(first) if first == last else f"{first}-{last}"


def _more(row: Mapping[str, Any]) -> str:
    """The problem that a user may have to solve."""
    return _line(row["trouble"] or (f"refused: {row['error']}" if row["error"] else None))
