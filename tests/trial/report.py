"""What a trial has to say at its end: one row a seed or site, and the violations."""

from __future__ import annotations

import dataclasses
import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.labs import table as components


@dataclass(kw_only=True)
class Row:
    """
    name            of the seed or site
    configuration   in words
    left_out        why it could not be tried here
    """

    name: str
    configuration: str = ""
    runs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    wall_s: float = 0.0
    left_out: str = ""

    def line(self) -> str:
        if self.left_out:
            return f"{self.name}: left out: {self.left_out}"
        faults = f", {self.faults.total()} faults" if self.faults else ""
        verdict = f"VIOLATIONS: {len(self.violations)}" if self.violations else "no violation"
        head = f"{self.name} ({self.configuration})" if self.configuration else self.name
        return f"{head}: {self.runs} runs{faults}, {verdict}, {self.wall_s:.0f} s"


def tried(row: Row, needed: Sequence[str], trial: Callable[[], None]) -> Row:
    """The row after its trial, where this machine has the components needed. An exception that no trial foresaw counts
    as a violation, and the next trial has its turn."""
    row.left_out = "; ".join(filter(None, (components.look_up(name).missing for name in needed)))
    if row.left_out:
        return row
    begun = time.monotonic()
    try:
        trial()
    except Exception:
        row.violations.append(traceback.format_exc())
    row.wall_s = time.monotonic() - begun
    return row


def table(title: str, rows: Sequence[Row]) -> str:
    lines = [f"{title:<16} {'runs':>6} {'faults':>7} {'violations':>11} {'wall s':>7}  configuration"]
    for row in [*rows, _total(rows)]:
        lines.append(
            f"{row.name:<16} {row.runs:>6} {row.faults.total():>7} {len(row.violations):>11} {row.wall_s:>7.0f}  "
            f"{row.left_out or row.configuration}"
        )
    kinds = _total(rows).faults.most_common()
    return "\n".join([*lines, *(["faults: " + ", ".join(f"{kind} {count}" for kind, count in kinds)] if kinds else [])])


def document(rows: Sequence[Row]) -> str:
    return json.dumps([dataclasses.asdict(row) for row in rows], indent=2)


def _total(rows: Sequence[Row]) -> Row:
    total = Row(name="all")
    for row in rows:
        total.runs += row.runs
        total.faults += row.faults
        total.violations += row.violations
        total.wall_s += row.wall_s
    return total
