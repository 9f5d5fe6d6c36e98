"""The page of a dry run."""

from __future__ import annotations

from typing import Any

from runyard.cli.show import formats
from runyard.client import Client
from runyard.model import units


def complete(client: Client, plan: dict[str, Any]) -> dict[str, Any]:
    """The yard's plan, and the options for a scheduler."""
    from runyard.app import sites

    return {**plan, "native": sites.dry_run(client, plan)}


def draw(console: Any, plan: dict[str, Any], title: str = "would run") -> None:
    from rich.text import Text

    from runyard.cli.show import tables

    console.print(Text(title, style="bold"))
    console.print(tables.pairs(_facts(plan)))
    if plan["native"]:
        told = "\n".join(["", *plan["native"]["commands"], "", plan["native"]["script"].rstrip()])
        console.print(Text(told), soft_wrap=True)


def _facts(plan: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("command", formats.one_line(formats.command_line(plan["argv"]))),
        ("directory", plan["cwd"] or ("its copy of the code" if plan["spec"].get("code") else "an empty one")),
        ("code", formats.code(plan["spec"]) or "none"),
        ("data", formats.data(plan["spec"]) or "none"),
        *(("upload", brought(folder)) for folder in plan.get("sent", ())),
        ("site", plan["site"] if plan["site"] != "any" else f"the first of {', '.join(plan['sites'])} with room"),
        ("nodes", formats.choice(plan["spec"]) or "any"),
        ("requested", formats.asked(plan["resources"])),
        ("queue", f"{plan['waiting']} waiting there now"),
    ]
    return facts + [("variable", formats.one_line(f"{name}={value}")) for name, value in sorted(plan["env"].items())]


def brought(folder: dict[str, Any]) -> str:
    """Number and size of a directory's files, and the largest ones."""
    extent = f"{formats.count(folder['files'], 'file')}, {units.show_size(folder['size'])}"
    named = ", ".join(f"{formats.one_line(path)} ({units.show_size(size)})" for path, size in folder["biggest"])
    return f"{formats.one_line(folder['folder'])}: {extent}" + (f"; the largest: {named}" if named else "")
