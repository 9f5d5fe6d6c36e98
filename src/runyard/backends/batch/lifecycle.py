"""A batch cluster as a backend: one life cycle for every dialect and every host.

Nothing that matters is remembered here. What was handed over stands in the manifests, what became of it in the queue,
in the accounts and in the jobs' directories; see docs/internals/batch.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from runyard.backends.base import Backend, Batch, Check, Job, Queueing, Refusal, Sighting, Stop
from runyard.backends.batch import check, clear, naming
from runyard.backends.batch import options as site_options
from runyard.backends.batch.dialect import Dialect, Unanswered
from runyard.backends.batch.evidence import Court
from runyard.backends.batch.files import Files
from runyard.backends.batch.gridengine import GridEngine
from runyard.backends.batch.options import Settings
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.send import DryRun, Sender
from runyard.backends.batch.slurm import Slurm
from runyard.backends.batch.stop import Stopper
from runyard.backends.batch.watch import Pace, Watch
from runyard.hosts.base import Host
from runyard.hosts.local import LocalHost
from runyard.model.wire import AttemptKey

ARRIVAL_S = 15.0  # beyond the time-out of a submit: what its client had sent by then has arrived


class BatchBackend(Backend, Queueing):
    def __init__(
        self, dialect: Dialect, host: Host, directory: str, settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        site_options.check_directory(directory)
        self.host = host
        self._directory, self._settings = directory, settings
        self._files = Files(host, directory, settings.python)
        self._scheduler = Scheduler(dialect, host, settings)
        court = Court(dialect=dialect, submit_window=settings.submit_timeout + ARRIVAL_S)
        self._stopper = Stopper(self._scheduler, self._files, clock)
        pace = Pace(settings.poll_interval, clock)
        self._watch = Watch(self._scheduler, self._files, court, pace, clock, self._stopper.discard)
        self._sender = Sender(self._scheduler, self._files, self._watch, settings, clock)

    def submit(self, batch: Batch) -> list[Refusal]:
        return self._sender.submit(batch)

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        self._sender.drop(self._stopper.prevented())
        self._sender.feed()
        held = {job.key: told for job in jobs if (told := self._sender.held(job.key))}
        found = self._watch.sight([job for job in jobs if job.key not in held])
        if self._sender.room() <= 0:
            self._watch.renew()
        self._stopper.press(self._watch)
        return {**held, **found}

    def cancel(self, stops: Sequence[Stop]) -> None:
        self._stopper.tell(stops)

    def explain(self, job: Job) -> str:
        held = self._sender.held(job.key)
        if held is not None:
            return held.text
        seen = self._watch.look([job])[job.key]
        try:
            told = self._scheduler.explain(self._watch.natives([job])[job.key][:1])
        except Unanswered:
            told = {}
        return next(iter(told.values()), seen.text) or f"it is {seen.presence} in {self._scheduler.dialect.title}"

    def room(self) -> int:
        return self._sender.room()

    def clear(self, like: str, owner: str, kept: Collection[str]) -> bool:
        return clear.clear(self._files, self._watch, self._scheduler, naming.yard_prefix(like), owner, kept)

    def dry_run(self, batch: Batch) -> DryRun:
        """The very script and command lines of a submit. Raises InvalidInput for what the scheduler cannot be asked."""
        return self._sender.dry_run(batch)

    def site_test(self, *, probe: bool = True) -> list[Check]:
        """What works here and what does not; with `probe` a job of a minute at most goes through the queue."""
        return check.examine(self._scheduler, self._files, self.host, self._directory, self._settings, probe=probe)


class _Kind(BatchBackend):
    """A batch backend by the name of its scheduler."""

    dialect: ClassVar[type[Dialect]]

    @classmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> BatchBackend:
        settings, dialect = site_options.parse(options, cls.dialect)
        return cls(dialect, host or LocalHost(), os.fspath(directory), settings)


class SlurmBackend(_Kind):
    dialect = Slurm


class GridEngineBackend(_Kind):
    dialect = GridEngine
