"""`runyard sweep replay`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli import output, words
from runyard.client import Client


@click.command("replay", short_help="Make its decisions again from the log, and compare.")
@click.argument("sweep")
@output.json_option
def command(sweep: str, as_json: bool) -> int:
    """Make all decisions of a sweep again from its log, and compare; exits with 1 where one differs."""
    client = Client(start=False)
    found = client.find_sweep(sweep)
    answer: dict[str, Any] = client.call("GET", f"/sweeps/{found.id}/replay")
    output.writer(as_json).write(answer, lambda console: _tell(found.label, answer))
    return 1 if answer["different"] else 0


def _tell(label: str, answer: dict[str, Any]) -> None:
    made = words.count(answer["decisions"], "decision")
    click.echo(f"sweep {label}: {made} made again, {len(answer['different']) or 'none'} different")
    for item in answer["different"]:
        click.echo(f"  {item['number']} {item['kind']}: was {item['recorded']}, is {item['computed']}")
