"""Job ids and dependencies, in the syntax of both tools.

A job is a run, or an array of runs with consecutive ids under the id of the first. Its tasks are `42_3` to Slurm and
`42.3` to Grid Engine.
"""

from __future__ import annotations

import enum
import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.bridges.scripts import arrays

_SLURM_JOB = re.compile(r"(\d{1,18})(?:_(?:(\d{1,9})|\[([\d,:%-]+)\]|\*))?")
_GRIDENGINE_JOB = re.compile(r"(\d{1,18})(?:\.([\d:-]+))?")
_KINDS = {"afterok": "ok", "afterany": "any", "aftercorr": "ok"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A job, or some of its tasks."""

    number: int | None = None
    name: str | None = None  # Grid Engine knows jobs by their names, too
    tasks: tuple[int, ...] | None = None  # None: all

    def __str__(self) -> str:
        return str(self.number) if self.number is not None else str(self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependency:
    """`kind` says how the other job must have ended: `ok` or `any`. `each`: task by task."""

    kind: str
    job: Reference
    each: bool = False


def read_slurm_job(word: str) -> Reference:
    match = _SLURM_JOB.fullmatch(word)
    if match is None:
        raise errors.InvalidInput(f"Invalid job id {word}", "write it like 42, 42_3 or 42_[1-4]")
    chosen = match[2] or match[3]
    tasks = arrays.parse_slurm(chosen).indexes if chosen else None
    return Reference(number=int(match[1]), tasks=tasks)


def read_gridengine_job(word: str) -> Reference:
    match = _GRIDENGINE_JOB.fullmatch(word)
    if match is None:
        return Reference(name=word)
    tasks = arrays.parse_gridengine(match[2], None).indexes if match[2] else None
    return Reference(number=int(match[1]), tasks=tasks)


def read_slurm_dependencies(text: str, name: str) -> Iterator[Dependency]:
    """`afterok:42:43,afterany:44_1`; `singleton` means all jobs of this name."""
    if "?" in text:
        raise errors.InvalidInput(
            "--dependency: `?` (any one of several) is not supported", "separate them by commas: all of them must hold"
        )
    for part in text.split(","):
        kind, _, jobs = part.partition(":")
        if kind == "singleton":
            yield Dependency(kind="any", job=Reference(name=name))
            continue
        if kind not in _KINDS:
            known = ", ".join([*_KINDS, "singleton"])
            raise errors.InvalidInput(f"--dependency: {kind!r} is not supported", f"there are: {known}")
        for word in jobs.split(":"):
            yield Dependency(kind=_KINDS[kind], job=read_slurm_job(word), each=kind == "aftercorr")


def read_gridengine_dependencies(lists: Iterable[str], *, each: bool) -> Iterator[Dependency]:
    for word in (word for text in lists for word in text.split(",") if word):
        yield Dependency(kind="any", job=read_gridengine_job(word), each=each)


class Wait(enum.Enum):
    """What a run waits for that has not been claimed yet."""

    ROOM = enum.auto()
    OTHERS = enum.auto()  # runs that it comes after
    TURN = enum.auto()  # the limit of its array


def waits_for(run: Mapping[str, Any]) -> Wait:
    match = re.match(r"waits for (?:run (\d+)|\d+ more)", run["detail"] or "")
    if match is None or run["state"] != "queued":
        return Wait.ROOM
    limit = (run["array"] or {}).get("limit")
    return Wait.TURN if limit and int(match[1] or 0) == run["id"] - limit else Wait.OTHERS


def members(run: Mapping[str, Any]) -> range:
    """The ids of all runs of the array that this run is the first of; else its own."""
    array = run.get("array")
    first = int(run["id"])
    return range(first, first + array["count"]) if array and array["offset"] == 0 else range(first, first + 1)


def name(run: Mapping[str, Any]) -> str:
    """Both tools have one for every job: by default that of the program."""
    command = run["command"].split() if isinstance(run["command"], str) else run["command"]
    return str(run["name"] or posixpath.basename(next(iter(command), "")))


def is_called(run: Mapping[str, Any], wanted: str) -> bool:
    """Grid Engine's names of jobs may be patterns."""
    return name(run) == wanted or fnmatch.fnmatchcase(name(run), wanted)


def array_id(run: Mapping[str, Any]) -> int:
    """The id that both tools show for it."""
    array = run.get("array")
    return int(run["id"]) - (array["offset"] if array else 0)
