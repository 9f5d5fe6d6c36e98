"""Which repetitions are missing, and their names."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.bridges.ludwig.folder import ProjectFolder, identity
from runyard.model.states import FINAL, RunState

TIME = "%Y-%m-%d-%H-%M-%S"  # without colons, which Windows servers do not take


@dataclass(frozen=True, kw_only=True, slots=True)
class LudwigJob:
    param_name: str
    job_name: str
    configuration: dict[str, Any]
    number: int  # how many of this configuration are submitted before it


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownRuns:
    """The states of a project's runs, by the name of their configuration."""

    good: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # jobs that succeeded, or still may
    bad: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # that failed, or were cancelled

    @classmethod
    def read(cls, runs: Iterable[Mapping[str, Any]]) -> KnownRuns:
        known = cls()
        for run in runs:
            may_succeed = run["state"] == RunState.SUCCEEDED or run["state"] not in FINAL
            for tag in run["tags"]:
                (known.good if may_succeed else known.bad)[tag].add(run["name"])
        return known


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionPlan:
    jobs: list[LudwigJob]
    new: dict[str, dict[str, Any]]  # configurations that the drive does not have yet, by their name


def plan(
    folder: ProjectFolder, known: KnownRuns, configurations: Sequence[dict[str, Any]], reps: int, *, anew: bool = False
) -> SubmissionPlan:
    """Succeeded, running and waiting runs count, and jobs that were on the drive before; none with `anew`."""
    named, new = _named(folder, known, configurations)
    jobs = []
    for param_name, configuration in named.items():
        bad = known.bad.get(param_name, set())
        done = folder.jobs(param_name) - bad | known.good.get(param_name, set())
        names = _job_names(done | bad)
        for number in range(reps if anew else max(0, reps - len(done))):
            jobs.append(
                LudwigJob(param_name=param_name, job_name=next(names), configuration=configuration, number=number)
            )
    jobs.sort(key=lambda job: job.number)  # all configurations once before any of them twice
    return SubmissionPlan(jobs=jobs, new={name: named[name] for name in new})


def _named(
    folder: ProjectFolder, known: KnownRuns, configurations: Sequence[dict[str, Any]]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Each configuration once, by its name on the drive, and which of the names are new there."""
    names: dict[Hashable, str] = {}
    for name, found in folder.configurations().items():
        names.setdefault(identity(found), name)
    fresh = folder.next_names([*known.good, *known.bad])
    named, new = {}, []
    for configuration in configurations:
        key = identity(configuration)
        if key not in names:
            names[key] = next(fresh)
            new.append(names[key])
        named[names[key]] = configuration
    return named, new


def _job_names(taken: set[str]) -> Iterator[str]:
    """`…_num0` and so on: readers count what has `num` in its name."""
    stamp = datetime.datetime.now().strftime(TIME)
    number = 0
    while True:
        name = f"{stamp}_num{number}"
        if name not in taken:
            yield name
        number += 1
