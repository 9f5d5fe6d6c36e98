"""Looking at the queue: once for all jobs, not too often, and less often while it does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from runyard.backends.base import Job, Presence, Sighting, Stop
from runyard.backends.batch import naming
from runyard.backends.batch.dialect import Native, Stage, Unanswered
from runyard.backends.batch.evidence import Court, foremost, needs_trace
from runyard.backends.batch.files import Files, Trace
from runyard.backends.batch.naming import Identity
from runyard.backends.batch.scheduler import Scheduler
from runyard.model.wire import AttemptKey

SHARE = 20  # a look that takes a second is made every twenty seconds at most
LONGEST_PAUSE_S = 60.0
RECENT_S = 2.0  # a look this old still counts as one made now

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The queue as it was."""

    begun_at: float
    natives: dict[Identity, list[Native]]
    tasks: int  # of the user, not over, ours or not
    jobs: int  # native ones, an array being one

    @classmethod
    def of(cls, natives: Iterable[Native], begun_at: float) -> Snapshot:
        found: dict[Identity, list[Native]] = {}
        active = []
        for native in natives:
            found.setdefault(naming.identity(native.name, native.task), []).append(native)
            if native.stage is not Stage.OVER:
                active.append(native.job)
        return cls(begun_at=begun_at, natives=found, tasks=len(active), jobs=len(set(active)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    at: float
    native_job: str


class Pace:
    """When the next look may be made."""

    def __init__(self, interval: float, clock: Callable[[], float]) -> None:
        self._interval, self._clock = interval, clock
        self._next_at = float("-inf")
        self.failures = 0

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next_at

    def answered(self, begun_at: float) -> None:
        now = self._clock()
        self.failures = 0
        self._next_at = now + max(self._interval, SHARE * (now - begun_at))

    def failed(self) -> None:
        self.failures += 1
        self._next_at = self._clock() + min(LONGEST_PAUSE_S, max(self._interval, 1.0) * 2**self.failures)


class Watch:
    def __init__(
        self, scheduler: Scheduler, files: Files, court: Court, pace: Pace, clock: Callable[[], float],
        discard: Callable[[Sequence[Job]], None],
    ) -> None:  # fmt: skip
        self._scheduler, self._files, self._court = scheduler, files, court
        self._pace, self._clock, self._discard = pace, clock, discard
        self.snapshot: Snapshot | None = None
        self._sent: dict[Identity, Sent] = {}  # acknowledged since the last look
        self._sightings: dict[AttemptKey, Sighting] = {}
        self._trouble = ""

    def sight(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """What is known of each; asks only when it is time to, or when there is one of which nothing is known."""
        unsettled = [job for job in jobs if not self._is_gone(job)]
        if unsettled and (self._pace.is_due or (not self._pace.failures and self._strangers(unsettled))):
            self.look(unsettled)
            self._sightings = {job.key: self._sightings[job.key] for job in jobs if job.key in self._sightings}
        return {job.key: self._tell(job) for job in jobs}

    def look(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """Judge these anew. What was never handed over is told without a question to the scheduler."""
        try:
            traces = self._files.look(self._strangers(jobs))
            told = {key: self._court.judge((), None, trace) for key, trace in traces.items() if trace.is_untouched}
            self._sightings.update(told)
            handed_over = [job for job in jobs if job.key not in told]
            if handed_over:
                self._take_snapshot()
                self._judge(handed_over)
        except Unanswered as error:
            self._pace.failed()
            self._note_trouble(str(error))
        return {job.key: self._tell(job) for job in jobs}

    def natives(self, jobs: Iterable[Job]) -> list[Native]:
        """Those of these jobs that are in the queue now, and not over. Raises Unanswered."""
        if self.snapshot is None or self._clock() > self.snapshot.begun_at + RECENT_S or self._sent:
            self._take_snapshot()
        assert self.snapshot is not None
        found = [native for job in jobs for native in self.snapshot.natives.get(_identity(job), ())]
        return [native for native in found if native.stage is not Stage.OVER]

    def note_sent(self, jobs: Iterable[Job], native_job: str) -> None:
        """The scheduler has acknowledged these."""
        for job in jobs:
            self._sent[_identity(job)] = Sent(at=self._clock(), native_job=native_job)
            self._sightings.pop(job.key, None)

    def note(self, job: Job, sighting: Sighting) -> None:
        self._sightings[job.key] = sighting

    def forget(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            self._sightings.pop(key, None)

    @property
    def busy_tasks(self) -> int:
        """How many tasks of the user there are, as far as it is known."""
        return (self.snapshot.tasks if self.snapshot else 0) + len(self._sent)

    @property
    def busy_jobs(self) -> int:
        """The same in native jobs, an array being one."""
        return (self.snapshot.jobs if self.snapshot else 0) + len({sent.native_job for sent in self._sent.values()})

    # --- judging ------------------------------------------------------------------------------------------------

    def _take_snapshot(self) -> None:
        """Raises Unanswered."""
        begun_at = self._clock()
        self.snapshot = Snapshot.of(self._scheduler.queue(), begun_at)
        self._pace.answered(begun_at)
        self._trouble = ""
        self._sent = {identity: sent for identity, sent in self._sent.items() if sent.at >= begun_at}

    def _judge(self, jobs: Sequence[Job]) -> None:
        assert self.snapshot is not None
        queued = {job.key: self.snapshot.natives.get(_identity(job), []) for job in jobs}
        in_hand = [job for job in jobs if not needs_trace(queued[job.key])]
        # One that was handed over while the queue was read is not missing.
        rest = [job for job in jobs if needs_trace(queued[job.key]) and _identity(job) not in self._sent]
        for job in in_hand:
            self.note(job, self._court.judge(queued[job.key], None, Trace()))
        self._judge_by_traces(rest, queued)
        self._give_up([job for job in jobs if self._is_gone(job)], queued)

    def _judge_by_traces(self, jobs: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        doubtful = list(jobs)
        try:
            traces = self._files.look(jobs)
            doubtful = [job for job in jobs if not queued[job.key]]
            for job in jobs:
                if queued[job.key]:
                    self.note(job, self._court.judge(queued[job.key], None, traces[job.key]))
            accounts = self._accounts({name for job in doubtful for name in traces[job.key].names})
            for job in doubtful:
                self.note(job, self._court.judge((), accounts.get(_identity(job)), traces[job.key]))
        except Unanswered as error:
            for job in doubtful:
                self.note(job, Sighting(presence=Presence.UNKNOWN, text=f"nothing is certain: {error}"))

    def _accounts(self, names: Iterable[str]) -> dict[Identity, Native]:
        """Of several records under one name the last counts. Raises Unanswered."""
        return {naming.identity(native.name, native.task): native for native in self._scheduler.accounts(names)}

    def _give_up(self, gone: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        """What is gone by our judgement, while the scheduler has it still, must never begin: fence and discard it."""
        lost = {job: native for job in gone if (native := _still_there(queued[job.key]))}
        if not lost:
            return
        reasons = self._scheduler.explain([native for native in lost.values() if native.stage is Stage.STUCK])
        for job, native in lost.items():
            if native.id in reasons:
                seen = self._sightings[job.key]
                self.note(job, replace(seen, text=f"{seen.text}: {reasons[native.id]}"))
        try:
            self._files.fence([Stop(job=job, reason="lost", grace=0) for job in lost], record=False)
        except Unanswered as error:
            log.warning("jobs that %s has given up could not be fenced: %s", self._scheduler.dialect.title, error)
        self._discard(list(lost))

    # --- telling ------------------------------------------------------------------------------------------------

    def _strangers(self, jobs: Iterable[Job]) -> list[Job]:
        return [job for job in jobs if job.key not in self._sightings and _identity(job) not in self._sent]

    def _is_gone(self, job: Job) -> bool:
        seen = self._sightings.get(job.key)
        return seen is not None and seen.presence is Presence.GONE

    def _tell(self, job: Job) -> Sighting:
        seen = self._sightings.get(job.key)
        if seen is not None and (seen.presence is Presence.GONE or not self._trouble):
            return seen
        if _identity(job) in self._sent:
            return Sighting(presence=Presence.PENDING, text=f"handed to {self._scheduler.dialect.title}")
        return Sighting(presence=Presence.UNKNOWN, text=self._trouble or "nothing is known of it yet")

    def _note_trouble(self, text: str) -> None:
        told = f"{self._scheduler.dialect.title} does not answer: {text}"
        if not self._trouble:
            log.warning("%s", told)
        self._trouble = told


def _still_there(natives: Sequence[Native]) -> Native | None:
    native = foremost(natives)
    return native if native is not None and native.stage is not Stage.OVER else None


def _identity(job: Job) -> Identity:
    return job.batch, job.index
