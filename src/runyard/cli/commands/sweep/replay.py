"""`runyard sweep replay`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.show import formats, output
from runyard.client import Client


@click.command("replay", short_help="Recompute the decisions of a sweep from its log, and compare.")
@click.argument("sweep")
@output.json_option
def command(sweep: str, as_json: bool) -> int:
    """Recompute all decisions of a sweep from its log, and compare; exits with 1 if one differs."""
    client = Client(start=False)
    found = client.find_sweep(sweep)
    answer: dict[str, Any] = client.call("GET", f"/sweeps/{found.id}/replay")
    output.writer(as_json).write(answer, lambda console: _tell(found.label, answer))
    return 1 if answer["different"] else 0


def _tell(label: str, answer: dict[str, Any]) -> None:
    made = formats.count(answer["decisions"], "decision")
    click.echo(f"sweep {label}: {made} recomputed, {len(answer['different']) or 'none'} different")
    for item in answer["different"]:
        click.echo(f"  {item['number']} {item['kind']}: was {item['recorded']}, is {item['computed']}")
