"""Arrays of tasks in the syntax of both tools: `1-8`, `0-15:4%2`, `1,3,5-7`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runyard import errors

MOST_TASKS = 100_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayTasks:
    indexes: tuple[int, ...]
    last: int  # as the job's variable has it: for 1-10:4, Grid Engine sets 10, Slurm 9
    step: int = 1
    limit: int | None = None  # most that run together

    def mappings(self) -> list[dict[str, Any]]:
        """The `array` field of each task's run."""
        common = {
            "first": self.indexes[0], "last": self.last, "step": self.step, "count": len(self.indexes),
            **({"limit": self.limit} if self.limit is not None else {}),
        }  # fmt: skip
        return [{"index": index, "offset": offset, **common} for offset, index in enumerate(self.indexes)]


def parse_slurm(text: str) -> ArrayTasks:
    ranges, percent, limit = text.strip().partition("%")
    if percent and not limit.isdecimal():
        raise _bad("--array", text)
    parts = [_range(part, "--array", text) for part in ranges.split(",")]
    indexes = tuple(sorted({index for part in parts for index in part}))
    step = next((part.step for part in parts if part.step != 1), 1)
    return ArrayTasks(indexes=indexes, last=indexes[-1], step=step, limit=int(limit) or None if percent else None)


def parse_gridengine(text: str, limit: int | None) -> ArrayTasks:
    """Grid Engine counts from 1, and puts a range the other way round into order."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise _bad("-t", text)
    first, last = sorted((int(match[1]), int(match[2] or match[1])))
    if first == 0:
        raise errors.InvalidInput("-t: 0 is no task", "count from 1")
    indexes = _range(f"{first}-{last}:{match[3] or 1}", "-t", text)
    return ArrayTasks(indexes=tuple(indexes), last=last, step=indexes.step, limit=limit)


def _range(part: str, flag: str, whole: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise _bad(flag, whole)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    found = range(first, last + 1, step) if step else range(0)
    if not found:
        raise _bad(flag, whole)
    if len(found) > MOST_TASKS:
        raise errors.InvalidInput(f"{flag}: {whole} are {len(found)} tasks", f"submit at most {MOST_TASKS} at once")
    return found


def _bad(flag: str, text: str) -> errors.InvalidInput:
    return errors.InvalidInput(f"{flag}: {text!r} is no range of tasks", "write it like 1-8, 0-15:4 or 1-100%4")
