"""Native jobs, found by the jobs of ours that they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runyard.backends.base import Job
from runyard.backends.batch import naming
from runyard.backends.batch.dialect import Native
from runyard.backends.batch.naming import Identity


@dataclass(frozen=True, kw_only=True, slots=True)
class Register:
    """Of what one question brought."""

    natives: Mapping[Identity, list[Native]]
    arrays: frozenset[tuple[str, str]]  # batch and id, of each native job that is known
    busy_tasks: int  # of the user, not over, ours or not
    busy_jobs: int  # native ones, an array being one
    busy_batches: frozenset[str]

    @classmethod
    def of(cls, natives: Iterable[Native]) -> Register:
        found: dict[Identity, list[Native]] = {}
        arrays, busy, batches = set(), [], set()
        for native in natives:
            identity = naming.identity(native.name, native.task)
            found.setdefault(identity, []).append(native)
            arrays.add((identity[0], native.job))
            if not native.is_over:
                busy.append(native.job)
                batches.add(identity[0])
        return cls(
            natives=found, arrays=frozenset(arrays), busy_tasks=len(busy), busy_jobs=len(set(busy)),
            busy_batches=frozenset(batches),
        )  # fmt: skip

    def about(self, job: Job) -> list[Native]:
        """All under its name; more than one after a submit that was repeated."""
        return self.natives.get((job.batch, job.index), [])

    def knows(self, job: Job, native_job: str) -> bool:
        """Whether the native job in which this one was acknowledged is there."""
        return (job.batch, native_job) in self.arrays
