"""What would run, shown to people."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli import native, words
from runyard.client import Client


def complete(client: Client, plan: dict[str, Any]) -> dict[str, Any]:
    """The yard's plan, and what a scheduler would be told."""
    return {**plan, "native": native.dry_run(client, plan)}


def draw(console: Any, plan: dict[str, Any], title: str = "would run") -> None:
    from rich.text import Text

    from runyard.cli import tables

    console.print(Text(title, style="bold"))
    console.print(tables.pairs(_facts(plan)))
    if plan["native"]:
        click.echo("\n".join(["", *plan["native"]["commands"], "", plan["native"]["script"]]))


def _facts(plan: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("command", words.one_line(words.command_line(plan["argv"]))),
        ("directory", plan["cwd"] or "a fresh one"),
        ("site", plan["site"] if plan["site"] != "any" else f"the first of {', '.join(plan['sites'])} with room"),
        ("asked", words.asked(plan["resources"])),
        ("queue", f"{plan['waiting']} waiting there now"),
    ]
    return facts + [("variable", words.one_line(f"{name}={value}")) for name, value in sorted(plan["env"].items())]
