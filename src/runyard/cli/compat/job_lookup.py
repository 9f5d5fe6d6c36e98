"""Find runs by the job ids and names of Slurm and Grid Engine."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from runyard import errors
from runyard.bridges.scripts import jobs
from runyard.bridges.scripts.job import ScriptJob
from runyard.bridges.scripts.jobs import Dependency, Reference
from runyard.cli.input.selection import ACTIVE
from runyard.client import Client

Run = dict[str, Any]


class JobLookup:
    def __init__(self, client: Client) -> None:
        self._client = client

    @functools.cached_property
    def me(self) -> str:
        """The caller's user name at the yard."""
        return str(self._client.call("GET", "/me")["name"])

    def active(self, **filters: Any) -> list[Run]:
        """Unfinished runs, oldest first."""
        return [run.data for run in self._client.iter_runs(state=ACTIVE, **filters)][::-1]

    def find(self, job: Reference) -> list[Run]:
        """The runs of a job, or of the tasks selected; none if there is no such job."""
        runs = self._called(str(job.name)) if job.number is None else self._numbered(job.number)
        return runs if job.tasks is None else [run for run in runs if _index(run) in job.tasks]

    def _called(self, name: str) -> list[Run]:
        return [run for run in self.active(owner=self.me) if jobs.is_called(run, name)] if name else []

    def _numbered(self, number: int) -> list[Run]:
        first = self._client.runs_by_id([number]).get(number)
        if first is None:
            return []
        found = self._client.runs_by_id(jobs.members(first.data))
        return [found[member].data for member in sorted(found)]

    def parents(self, job: ScriptJob) -> list[dict[str, list[int]]]:
        """For each task of the job: the ids of the runs that it depends on."""
        indexes: Sequence[int | None] = job.tasks.indexes if job.tasks else [None]
        parents: list[dict[str, list[int]]] = [{} for _ in indexes]
        for dependency in job.dependencies:
            field = "after" if dependency.kind == "ok" else "after_any"
            runs = self._find_parents(job, dependency)
            for task, found in zip(indexes, parents, strict=True):
                meant = [run["id"] for run in runs if not dependency.each or _index(run) in (None, task)]
                found.setdefault(field, []).extend(meant)
        return parents

    def _find_parents(self, job: ScriptJob, dependency: Dependency) -> list[Run]:
        """Grid Engine treats an unknown job as finished, and accepts names."""
        found = self.find(dependency.job)
        if found or dependency.job.number is None:
            return found
        if job.dialect == "slurm":
            raise errors.InvalidInput(f"job dependency problem: there is no job {dependency.job}", "runyard squeue")
        job.notice(f"-hold_jid: there is no job {dependency.job}: nothing to wait for")
        return []


def _index(run: Run) -> int | None:
    return int(run["array"]["index"]) if run["array"] else None


def named_words(words: Iterable[str]) -> list[str]:
    """Each may be a list. An empty word stays and matches nothing: an unset variable never means all jobs."""
    return [word for text in words for word in wanted_ids([text]) or [text]]


def wanted_ids(lists: Iterable[str]) -> list[str]:
    """The items of lists with commas, except for commas in brackets."""
    found, depth = [""], 0
    for character in ",".join(lists):
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [word for word in found if word]
