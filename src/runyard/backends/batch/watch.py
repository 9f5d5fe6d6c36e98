"""Looking at the queue: once for all jobs, not too often, and less often while it does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from runyard.backends.base import Job, Presence, Sighting, Stop
from runyard.backends.batch.dialect import Native, Stage, Unanswered
from runyard.backends.batch.evidence import Court, Evidence, foremost, needs_trace
from runyard.backends.batch.files import Files
from runyard.backends.batch.naming import Identity
from runyard.backends.batch.register import Register
from runyard.backends.batch.scheduler import Scheduler
from runyard.model.wire import AttemptKey

SHARE = 20  # a look that takes a second is made every twenty seconds at most
LONGEST_PAUSE_S = 60.0
RECENT_S = 2.0  # a look this old still counts as one made now

log = logging.getLogger(__name__)


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
        self._next_at = self._clock() + min(LONGEST_PAUSE_S, max(self._interval, 1.0) * 2**self.failures)
        self.failures += 1


class Watch:
    def __init__(
        self, scheduler: Scheduler, files: Files, court: Court, pace: Pace, clock: Callable[[], float],
        discard: Callable[[Sequence[Job]], None],
    ) -> None:  # fmt: skip
        self._scheduler, self._files, self._court = scheduler, files, court
        self._pace, self._clock, self._discard = pace, clock, discard
        self._queue = Register.of(())  # as it was at the last look
        self._looked_at = float("-inf")
        self._sent: dict[Identity, str] = {}  # what was acknowledged since then, and in which native job
        self._sightings: dict[AttemptKey, Sighting] = {}
        self._trouble = ""

    def sight(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """What is known of each; asks only when it is time to, or when there is one of which nothing is known."""
        unsettled = [job for job in jobs if not self._is_gone(job)]
        if unsettled and (self._pace.is_due or (not self.in_trouble and self._strangers(unsettled))):
            begun_at = self._clock()
            self.look(unsettled)
            if not self.in_trouble:
                self._pace.answered(begun_at)
            self._sightings = {job.key: self._sightings[job.key] for job in jobs if job.key in self._sightings}
        return {job.key: self._tell(job) for job in jobs}

    def look(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """Judge these anew. What was never handed over is told without a question to the scheduler."""
        try:
            self._refuse_in_trouble()
            traces = self._files.look(self._strangers(jobs))
            told = {
                key: self._court.judge(Evidence(trace=trace)) for key, trace in traces.items() if trace.is_untouched
            }
            self._sightings.update(told)
            handed_over = [job for job in jobs if job.key not in told]
            if handed_over:
                self._read_queue()
                self._judge(handed_over)
        except Unanswered as error:
            self.doubt(str(error))
        return {job.key: self._tell(job) for job in jobs}

    def natives(self, jobs: Iterable[Job]) -> dict[AttemptKey, list[Native]]:
        """What is in the queue now of these jobs, and not over. Raises Unanswered."""
        try:
            self._refuse_in_trouble()
            if self._sent or self._clock() > self._looked_at + RECENT_S:
                self._read_queue()
        except Unanswered as error:
            self.doubt(str(error))
            raise
        return {job.key: [native for native in self._queue.about(job) if not native.is_over] for job in jobs}

    def doubt(self, text: str) -> None:
        """The scheduler did not answer: nothing is known until it does, and it is left alone for a while."""
        if self.in_trouble:
            return
        if not self._trouble:
            log.warning("%s does not answer: %s", self._scheduler.dialect.title, text)
        self._trouble = f"{self._scheduler.dialect.title} does not answer: {text}"
        self._pace.failed()

    @property
    def in_trouble(self) -> bool:
        """It did not answer, and it is too early to ask again."""
        return self._pace.failures > 0 and not self._pace.is_due

    def note_sent(self, jobs: Iterable[Job], native_job: str) -> None:
        """The scheduler has acknowledged these."""
        for job in jobs:
            self._sent[_identity(job)] = native_job
            self._sightings.pop(job.key, None)

    def note(self, job: Job, sighting: Sighting) -> None:
        self._sightings[job.key] = sighting

    def forget(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            self._sightings.pop(key, None)

    @property
    def busy_tasks(self) -> int:
        """How many tasks of the user there are, as far as it is known."""
        return self._queue.busy_tasks + len(self._sent)

    @property
    def busy_jobs(self) -> int:
        """The same in native jobs, an array being one."""
        return self._queue.busy_jobs + len(set(self._sent.values()))

    # --- judging ------------------------------------------------------------------------------------------------

    def _read_queue(self) -> None:
        """Raises Unanswered."""
        begun_at = self._clock()
        self._queue, self._looked_at = Register.of(self._scheduler.queue()), begun_at
        self._trouble, self._pace.failures = "", 0
        self._sent.clear()

    def _refuse_in_trouble(self) -> None:
        if self.in_trouble:
            raise Unanswered(self._trouble)

    def _judge(self, jobs: Sequence[Job]) -> None:
        queued = {job.key: self._queue.about(job) for job in jobs}
        for job in jobs:
            if not needs_trace(queued[job.key]):
                self.note(job, self._court.judge(Evidence(natives=queued[job.key])))
        self._judge_by_traces([job for job in jobs if needs_trace(queued[job.key])], queued)
        self._give_up([job for job in jobs if self._is_gone(job)], queued)

    def _judge_by_traces(self, jobs: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        """What the scheduler tells is over, or does not tell of at all."""
        if not jobs:
            return
        try:
            traces = self._files.look(jobs)
        except Unanswered as error:
            self._leave_open(jobs, error)
            return
        try:
            unrecorded = [traces[job.key] for job in jobs if not traces[job.key].recorded]
            accounts = self._scheduler.accounts({name for trace in unrecorded for name in trace.names})
        except Unanswered as error:
            self._leave_open([job for job in jobs if not queued[job.key]], error)
            accounts, jobs = [], [job for job in jobs if queued[job.key]]
        told = Register.of(accounts)
        for job in jobs:
            trace = traces[job.key]
            account = next(reversed(told.about(job)), None)  # of several the last counts
            known = self._queue.knows(job, trace.accepted) or told.knows(job, trace.accepted)
            evidence = Evidence(natives=queued[job.key], account=account, trace=trace, array_is_known=known)
            self.note(job, self._court.judge(evidence))

    def _leave_open(self, jobs: Iterable[Job], error: Unanswered) -> None:
        for job in jobs:
            self.note(job, Sighting(presence=Presence.UNKNOWN, text=f"nothing is certain: {error}"))

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


def _still_there(natives: Sequence[Native]) -> Native | None:
    native = foremost(natives)
    return native if native is not None and not native.is_over else None


def _identity(job: Job) -> Identity:
    return job.batch, job.index
