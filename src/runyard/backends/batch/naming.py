"""Names: a native job is (name, task), and a job of ours (batch, index). Each is computed from the other, without
stored state.

The site limits the task numbers of an array, so a batch may need several arrays. The name of each has the offset of its
task numbers: task 7 of `ry-3-1-42.o1000` is job 1007 of the batch `ry-3-1-42`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

_DERIVED = re.compile(r"(.+)\.o(\d+)")

Identity = tuple[str, int]  # batch and index


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayPiece:
    """Jobs of a batch that go into one native array; task 1 alone is a plain job."""

    offset: int
    tasks: tuple[int, ...]

    @property
    def indexes(self) -> list[int]:
        return [self.offset + task for task in self.tasks]

    def split(self, size: int) -> tuple[ArrayPiece, ArrayPiece | None]:
        """The first so many, and the rest."""
        rest = self.tasks[size:]
        first = ArrayPiece(offset=self.offset, tasks=self.tasks[:size])
        return first, ArrayPiece(offset=self.offset, tasks=rest) if rest else None


def native_name(batch: str, offset: int) -> str:
    return f"{batch}.o{offset}" if offset else batch


def identity(name: str, task: int) -> Identity:
    """Of a native job; for one that is not ours, something that no job of ours has."""
    derived = _DERIVED.fullmatch(name)
    return (derived[1], int(derived[2]) + task) if derived else (name, task)


def yard_prefix(batch: str) -> str:
    """What the names of all batches of its yard begin with: `ry-3-` of `ry-3-1-42`, whenever that yard was started."""
    return "-".join(batch.split("-")[:-2]) + "-"


def pieces(indexes: Iterable[int], array_size: int, *, gaps: bool) -> list[ArrayPiece]:
    """As few native jobs as the scheduler allows; `gaps`: the tasks of an array need not follow each other."""
    found: list[ArrayPiece] = []
    for offset, group in groupby(sorted(indexes), key=lambda index: (index - 1) // array_size * array_size):
        tasks = [index - offset for index in group]
        parts = [tasks] if gaps else _without_gaps(tasks)
        found += [ArrayPiece(offset=offset, tasks=tuple(part)) for part in parts]
    return found


def _without_gaps(tasks: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for task in tasks:
        if found and task == found[-1][-1] + 1:
            found[-1].append(task)
        else:
            found.append([task])
    return found
