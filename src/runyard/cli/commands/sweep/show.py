"""`runyard sweep show` and `runyard sweep best`."""

from __future__ import annotations

from typing import Any

import click

from runyard.cli.commands.sweep import bests, views
from runyard.cli.show import formats, output
from runyard.client import Client, Sweep


@click.command("show")
@click.argument("sweep")
@output.json_option
def command(sweep: str, as_json: bool) -> None:
    """Show the progress of a sweep, and what to do next."""
    found = Client(start=False).find_sweep(sweep)
    output.writer(as_json).write(found.data, lambda console: _draw(console, found))


@click.command("best")
@click.argument("sweep")
@bests.metric_options
@output.quiet_option
@output.json_option
def best(sweep: str, quiet: bool, as_json: bool, **given: Any) -> None:
    """Show the best configuration of a sweep, and where its outputs are."""
    bests.of_sweep(Client(start=False).find_sweep(sweep), given, output.writer(as_json, quiet))


def tell_end(sweep: Sweep) -> None:
    """After waiting for it."""
    click.echo(views.sentence(sweep))
    steps = _next(sweep)
    longest = max(len(command) for command, _ in steps)
    for command, why in steps:
        output.remark(f"  {command:<{longest}}   {why}")


def _draw(console: Any, sweep: Sweep) -> None:
    from rich.text import Text

    from runyard.cli.show import tables

    console.print(Text(f"sweep {sweep.label} {sweep.state}", style="bold"))
    console.print(tables.pairs(_facts(sweep)))
    console.print()
    console.print(tables.commands(_next(sweep)))


def _facts(sweep: Sweep) -> list[tuple[str, str]]:
    view = sweep.data
    facts = [
        ("name", formats.one_line(view["name"] or "")),
        ("project", view["project"]),
        ("owner", view["owner"]),
        ("command", formats.one_line(formats.command_line(view["document"]["command"]))),
        ("method", _method(view)),
        ("objective", _objective(view)),
        ("done", f"{views.bar(view)} {views.progress(view)}"),
        ("runs", views.counts(view["runs"])),
        ("best", views.best(view)),
        ("saved", views.saved(view["steps"])),
        ("note", formats.detail(view)),
        ("created", formats.local_time(view["created_at"])),
    ]
    return [(name, text) for name, text in facts if text]


def _method(view: dict[str, Any]) -> str:
    parts = [view["method"], formats.count(view["reps"], "repetition"), f"seed {view['seed']}"]
    parts += [f"at most {view['parallel']} at a time"] if view["parallel"] else []
    parts += [f"stopped early by {view['stop']['rule']}"] if view["stop"] else []
    return ", ".join(parts)


def _objective(view: dict[str, Any]) -> str:
    objective = view["objective"]
    return f"{objective['goal']} {objective['metric']}, {objective['at']} value" if objective else ""


def _next(sweep: Sweep) -> list[tuple[str, str]]:
    steps = [(f"runyard sweep table {sweep.label}", "list all configurations")]
    if not sweep.final:
        steps.insert(0, (f"runyard sweep watch {sweep.label}", "watch progress"))
        steps.append((f"runyard sweep cancel {sweep.label}", "cancel it"))
    if sweep.data["runs"].get("failed"):
        steps.append((f"runyard ls --sweep {sweep.label} --state failed", "list failed runs and reasons"))
        steps.append((f"runyard sweep retry {sweep.label}", "retry failed runs"))
    if sweep.data["best"]:
        steps.append((f"runyard sweep best {sweep.label}", "show the best configuration and its outputs"))
    return steps
