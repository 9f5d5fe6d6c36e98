"""`runyard status`."""

from __future__ import annotations

from typing import Any

import click

from runyard import errors
from runyard.cli.show import failures, output
from runyard.client import Client


@click.command("status")
@output.json_option
def command(as_json: bool) -> int:
    """Show whether the yard is running, and where.

    Exits with 205 if it is not.
    """
    client = Client(start=False)
    writer = output.writer(as_json)
    try:
        health = client.health()
    except errors.YardUnreachable as error:
        if as_json:
            is_there = isinstance(error, errors.StoreError)  # the yard's own answer
            writer.write({"running": is_there, "home": str(client.home), "error": error.message}, lambda console: None)
        failures.report(error.message, error.fix)
        return error.exit_code
    document = {"running": True, "url": client.url, **health, "troubles": [*_troubles(client), *_mirror(health)]}
    writer.write(document, lambda console: _draw(console, document))
    return 0


def _troubles(client: Client) -> list[str]:
    """Why agents start no runs, as far as the caller may see them."""
    try:
        return [agent["trouble"] for agent in client.agents() if agent["trouble"]]
    except errors.Forbidden:
        return []


def _mirror(health: dict[str, Any]) -> list[str]:
    """Why results are not copied to the shared directory."""
    mirror = health.get("mirror") or {}
    return [f"results are not mirrored: {mirror['trouble']}"] if mirror.get("trouble") else []


def _draw(console: Any, status: dict[str, Any]) -> None:
    from runyard.cli.show import tables

    counts = ", ".join(f"{number} {state}" for state, number in status["runs"].items() if number)
    console.print(
        tables.pairs(
            [
                ("address", status["url"]),
                ("process", str(status["pid"])),
                ("version", status["version"]),
                ("home", status["home"]),
                ("runs", counts or "none yet: runyard submit -- python train.py"),
                *(("trouble", trouble) for trouble in status["troubles"]),
            ]
        )
    )
