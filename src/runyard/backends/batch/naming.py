"""Names: a native job is (name, task), and a job of ours (batch, index). Each follows from the other, without memory.

An array has room for tasks up to a number that the site sets, so a batch may need several. The name of each says what its
task numbers lack: task 7 of `ry-3-1-42.o1000` is job 1007 of the batch `ry-3-1-42`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from runyard.backends.base import Job
from runyard.backends.batch import dialect

_DERIVED = re.compile(r"(.+)\.o(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Jobs of a batch that fit into one native array, or the only job of a plain one."""

    offset: int
    tasks: tuple[int, ...]

    @property
    def indexes(self) -> list[int]:
        return [self.offset + task for task in self.tasks]


def native_name(batch: str, offset: int) -> str:
    return f"{batch}.o{offset}" if offset else batch


def identity(name: str, task: int) -> tuple[str, int]:
    """Batch and index of a native job; for one that is not ours, something that no job of ours has."""
    derived = _DERIVED.fullmatch(name)
    return (derived[1], int(derived[2]) + task) if derived else (name, task)


def pieces(indexes: Iterable[int], array_size: int, *, gaps: bool) -> list[Piece]:
    """As few native jobs as the scheduler allows. A single job is no array: it is task 1 with an offset of its own."""
    found: list[Piece] = []
    for offset, group in groupby(sorted(indexes), key=lambda index: (index - 1) // array_size * array_size):
        members = list(group)
        for part in [members] if gaps else _without_gaps(members):
            if len(part) == 1:
                found.append(Piece(offset=part[0] - 1, tasks=(1,)))
            else:
                found.append(Piece(offset=offset, tasks=tuple(index - offset for index in part)))
    return found


def _without_gaps(indexes: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for index in indexes:
        if found and index == found[-1][-1] + 1:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def outs(job: Job, natives: Iterable[dialect.Native]) -> list[str]:
    """The files that this job's native output may be in: as these natives, as a plain job, as a task of an array."""
    seen = [dialect.out_name(native.name, native.task) for native in natives]
    plain = dialect.out_name(native_name(job.batch, job.index - 1), 1)
    return list(dict.fromkeys([*seen, plain, dialect.out_name(job.batch, job.index)]))
