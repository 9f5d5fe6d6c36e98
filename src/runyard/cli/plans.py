"""What would run, shown to people."""

from __future__ import annotations

from typing import Any

from runyard.cli import native, words
from runyard.client import Client
from runyard.model import units


def complete(client: Client, plan: dict[str, Any]) -> dict[str, Any]:
    """The yard's plan, and what a scheduler would be told."""
    return {**plan, "native": native.dry_run(client, plan)}


def draw(console: Any, plan: dict[str, Any], title: str = "would run") -> None:
    from rich.text import Text

    from runyard.cli import tables

    console.print(Text(title, style="bold"))
    console.print(tables.pairs(_facts(plan)))
    if plan["native"]:
        told = "\n".join(["", *plan["native"]["commands"], "", plan["native"]["script"].rstrip()])
        console.print(Text(told), soft_wrap=True)


def _facts(plan: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("command", words.one_line(words.command_line(plan["argv"]))),
        ("directory", plan["cwd"] or ("its copy of the code" if plan["spec"].get("code") else "a fresh one")),
        ("code", words.code(plan["spec"]) or "none"),
        ("data", words.data(plan["spec"]) or "none"),
        *(("brought", brought(folder)) for folder in plan.get("sent", ())),
        ("site", plan["site"] if plan["site"] != "any" else f"the first of {', '.join(plan['sites'])} with room"),
        ("nodes", words.choice(plan["spec"]) or "any"),
        ("asked", words.asked(plan["resources"])),
        ("queue", f"{plan['waiting']} waiting there now"),
    ]
    return facts + [("variable", words.one_line(f"{name}={value}")) for name, value in sorted(plan["env"].items())]


def brought(folder: dict[str, Any]) -> str:
    """How much is in a folder, and what of it is big."""
    extent = f"{words.count(folder['files'], 'file')}, {units.show_size(folder['size'])}"
    named = ", ".join(f"{words.one_line(path)} ({units.show_size(size)})" for path, size in folder["biggest"])
    return f"{words.one_line(folder['folder'])}: {extent}" + (f"; the biggest: {named}" if named else "")
