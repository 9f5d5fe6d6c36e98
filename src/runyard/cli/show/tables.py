"""Tables for users. A column without information, the same default in every row, is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from runyard.cli.show import formats
from runyard.model import units

COLOURS = {
    "queued": "dim", "starting": "blue", "running": "cyan", "stopping": "yellow",
    "succeeded": "green", "failed": "red", "cancelled": "yellow",
    "ok": "green", "warn": "yellow", "fail": "red", "alive": "green", "unreachable": "red", "full": "red",
    "drained": "yellow", "waiting": "dim", "stopped": "yellow",
}  # fmt: skip

LARGEST = 1_000_000  # columns: no limit
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    title: str
    value: Callable[[Row], str]
    right: bool = False
    flexible: bool = False  # shrinks in a narrow terminal
    wrapped: bool = False  # wraps over several lines instead of being cut
    coloured: bool = False  # by its value
    boring: tuple[str, ...] | None = None  # left out if every row has one of these


RUN_COLUMNS = (
    Column(title="ID", value=lambda run: str(run["id"]), right=True),
    Column(title="STATE", value=lambda run: state(run), coloured=True),
    Column(title="NAME", value=formats.title, flexible=True),
    Column(title="PROJECT", value=lambda run: run["project"], flexible=True, boring=("default",)),
    Column(title="SITE", value=lambda run: run["site"] or "-", boring=("local", "-")),
    Column(title="ASKED", value=lambda run: short_resources(run["resources"]), boring=("1cpu",)),
    Column(title="AGE", value=lambda run: formats.ago(run["created_at"]), right=True),
    Column(title="TIME", value=formats.elapsed, right=True),
    Column(title="NOTE", value=formats.note, flexible=True, boring=("",)),
)


def state(run: Row) -> str:
    return "stopping" if run.get("cancel_requested") else str(run["state"])


def short_resources(resources: Row) -> str:
    """`2cpu 4.0G 1gpu`, on several nodes `4x 2cpu 4.0G`."""
    parts = [f"{resources['nodes']}x"] if resources.get("nodes", 1) > 1 else []
    parts.append(f"{resources.get('cpus', 1)}cpu")
    if resources.get("memory"):
        parts.append(units.show_size(resources["memory"]).replace(" ", "").removesuffix("B"))
    if resources.get("gpus"):
        parts.append(f"{resources['gpus']}gpu")
    return " ".join(parts)


def build(columns: Sequence[Column], rows: Iterable[Row]) -> Table:
    kept = list(rows)
    cells = {column: [column.value(row) for row in kept] for column in columns}
    shown = [column for column in columns if column.boring is None or not set(cells[column]) <= set(column.boring)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in shown:
        table.add_column(
            column.title, justify="right" if column.right else "left", no_wrap=not column.flexible,
            min_width=8 if column.flexible else None,
        )  # fmt: skip
    for index in range(len(kept)):
        table.add_row(*(_cell(column, cells[column][index]) for column in shown))
    return table


@dataclass(frozen=True, slots=True)
class Fitting:
    """The first of these if it fits, else the second."""

    wide: Table
    narrow: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = Measurement.get(console, options.update(max_width=LARGEST), self.wide).maximum
        yield self.wide if whole <= options.max_width else self.narrow


def _cell(column: Column, text: str) -> Text:
    style = COLOURS.get(text, "") if column.coloured else ""
    return Text(text, style=style, no_wrap=not column.wrapped, overflow="fold" if column.wrapped else "ellipsis")


def commands(steps: Iterable[tuple[str, str]]) -> Table:
    """Commands to run next, each with its purpose."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for command, why in steps:
        table.add_row(f"  {command}", why)
    return table


def pairs(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Names on the left, values on the right; long values wrap."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(f"  {name}", value)
    return table
