"""`runyard diff`: two runs side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from runyard.cli.show import formats, output
from runyard.client.compare import Comparison
from runyard.client.compare.differences import MISSING, DifferenceKind, Section
from runyard.client.compare.files import FileChange
from runyard.model import units

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 40  # of one section
SHORT_DIGEST = len("sha256:") + 12
LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
UNITS = {
    "memory": units.show_size, "gpu_memory": units.show_size, "peak_memory": units.show_size,
    "time": units.show_duration, "wall_time": units.show_duration, "cpu_time": units.show_duration,
}  # fmt: skip


def draw(console: Console, comparison: Comparison, *, lines: bool) -> None:
    console.print(Text(verdict(comparison), style="bold"))
    if comparison.sections:
        console.print()
        console.print(_table(comparison))
    if comparison.files:
        console.print()
        for change in comparison.files:
            console.print(_heading(change))
    for change in comparison.files if lines else ():
        _draw_lines(console, change)
    for note in comparison.notes:
        output.remark(note)


def verdict(comparison: Comparison) -> str:
    """`runs 42 and 57: same inputs, same results`."""
    first, second = comparison.runs
    asked = "same inputs" if comparison.knows_code else "same inputs, as far as is known"
    if not comparison.same(DifferenceKind.ASKED):
        asked = f"different {_listed(_experiment(comparison))}"
    if not comparison.over:
        return f"runs {first} and {second}: {asked}; they have not both finished"
    came = "same results" if comparison.same(DifferenceKind.RESULT) else "different results"
    return f"runs {first} and {second}: {asked}, {came}"


def _experiment(comparison: Comparison) -> list[str]:
    """The sections of the inputs that differ."""
    named = [one.name for one in comparison.sections if one.kind is DifferenceKind.ASKED]
    return named if "code" in named or not comparison.files else [*named, "script"]


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("")
    for run in comparison.runs:
        table.add_column(f"run {run}", overflow="fold")
    for one in comparison.sections:
        for row in _rows(one):
            table.add_row(*row)
    return table


def _rows(one: Section) -> Iterator[tuple[Text, ...]]:
    yield (Text(one.name, style="bold"),)
    for each in one.differences[:MOST_ROWS]:
        shown = (Text(_shown(each.name, value)) for value in (each.before, each.after))
        yield (Text(f"  {formats.one_line(each.name)}"), *shown)
    if len(one.differences) > MOST_ROWS:
        yield (Text(f"  … {len(one.differences) - MOST_ROWS} more: --json has all", style="dim"),)


def _shown(name: str, value: Any) -> str:
    if value is MISSING or value is None:
        return "-"
    unit = UNITS.get(name.removeprefix("granted "))
    if unit is not None and isinstance(value, (int, float)):
        return unit(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return formats.one_line(formats.command_line(value))
    text = value if isinstance(value, str) else json.dumps(value)
    return formats.one_line(text[:SHORT_DIGEST] if text.startswith("sha256:") else text)


def _heading(change: FileChange) -> Text:
    counted = "" if change.diff is None else "  +{} -{}".format(*_count(change.diff))
    return Text(f"  {change.change:<8} {formats.one_line(change.path)}{counted}")


def _count(diff: str) -> tuple[int, int]:
    lines = [line[:1] for line in diff.splitlines() if not line.startswith(("+++ ", "--- "))]
    return lines.count("+"), lines.count("-")


def _draw_lines(console: Console, change: FileChange) -> None:
    if not change.diff:
        return
    console.print()
    for line in change.diff.splitlines():
        console.print(Text(formats.one_line(line.expandtabs()), style=LINE_COLOURS.get(line[:1], "")), soft_wrap=True)
