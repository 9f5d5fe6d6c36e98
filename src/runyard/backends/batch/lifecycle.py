"""A batch cluster as a backend: one life cycle for every dialect and every host.

No important state is in memory. Submitted jobs are in the manifests; their state is in the queue, in the accounting and
in the jobs' directories; see docs/internals/batch.md.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from runyard.backends.base import Backend, Batch, Check, Job, Queueing, Refusal, Sighting, StopRequest
from runyard.backends.batch import check, naming
from runyard.backends.batch import options as site_options
from runyard.backends.batch.dialect import Dialect, Unanswered
from runyard.backends.batch.evidence import Court
from runyard.backends.batch.files import Files
from runyard.backends.batch.options import BatchSettings
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.send import BatchSender, DryRun
from runyard.backends.batch.stop import Stopper
from runyard.backends.batch.watch import PollTimer, QueueWatch
from runyard.hosts.base import Host
from runyard.hosts.local import LocalHost
from runyard.model.wire import AttemptKey

log = logging.getLogger(__name__)
ARRIVAL_S = 15.0  # beyond the time-out of a submit: what its client had sent by then has arrived


class BatchBackend(Backend, Queueing):
    def __init__(
        self, dialect: Dialect, host: Host, directory: str, settings: BatchSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        site_options.check_directory(directory)
        self.host, self.signals = host, dialect.signals
        self._directory, self._settings = directory, settings
        self._files = Files(host, directory, settings.python)
        self._scheduler = Scheduler(dialect, host, settings)
        court = Court(dialect=dialect, submit_window=settings.submit_timeout + ARRIVAL_S)
        self._stopper = Stopper(self._scheduler, self._files, clock)
        pace = PollTimer(settings.poll_interval, clock)
        self._watch = QueueWatch(self._scheduler, self._files, court, pace, clock, self._stopper.discard)
        self._sender = BatchSender(self._scheduler, self._files, self._watch, settings, clock)

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

    def cancel(self, stops: Sequence[StopRequest]) -> None:
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
        return _clear(self._files, self._watch, self._scheduler, naming.yard_prefix(like), owner, kept)

    def dry_run(self, batch: Batch) -> DryRun:
        """The exact script and command lines of a submit. Raises InvalidInput for what the scheduler cannot be
        asked."""
        return self._sender.dry_run(batch)

    def site_test(self, *, probe: bool = True) -> list[Check]:
        """Check what works here; with `probe` a job of at most a minute is run through the queue."""
        return check.examine(self._scheduler, self._files, self.host, self._directory, self._settings, probe=probe)


class _Kind(BatchBackend):
    """A batch backend whose scheduler is given."""

    dialect: ClassVar[type[Dialect]]

    @classmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> BatchBackend:
        settings, dialect = site_options.parse(options, cls.dialect)
        return cls(dialect, host or LocalHost(), os.fspath(directory), settings)


def backend_of(dialect: type[Dialect]) -> type[BatchBackend]:
    return type(f"{dialect.__name__}Backend", (_Kind,), {"dialect": dialect})


def _clear(
    files: Files, watch: QueueWatch, scheduler: Scheduler, prefix: str, owner: str, kept: Collection[str]
) -> bool:  # fmt: skip
    """Delete what is left of ended batches. Those with jobs in the queue stay: a task may still start, and reads its
    directory from the manifest. Waiting jobs are removed: the process that stopped them may have ended before it
    could."""
    try:
        over = set(files.owned(prefix, owner)) - set(kept)
        there = over & watch.busy_batches() if over else set()
        if over > there:
            files.remove(over - there)
        forsaken = watch.waiting(there) if there else []
        if forsaken:
            scheduler.cancel(forsaken)
    except Unanswered as error:
        log.info("what is left of old batches stays where it is for now: %s", error)
        return False
    return not there
