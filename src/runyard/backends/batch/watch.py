"""Poll the queue: once for all jobs, not too often, and less often while it does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runyard.backends.base import Job, Presence, Sighting, StopRequest
from runyard.backends.batch import naming
from runyard.backends.batch.dialect import Native, Stage, Unanswered
from runyard.backends.batch.evidence import MOST_WORDS, Court, Evidence, foremost, needs_trace
from runyard.backends.batch.files import Files
from runyard.backends.batch.naming import Identity
from runyard.backends.batch.scheduler import Scheduler
from runyard.model.wire import AttemptKey

SHARE = 20  # a look that takes a second is made every twenty seconds at most
LONGEST_PAUSE_S = 60.0
RECENT_S = 2.0  # a look this old still counts as one made now
REASONS_FOR_S = 30.0  # why jobs wait is asked no more often, where it takes a question of its own
MOST_EXPLAINED = 50

log = logging.getLogger(__name__)


class PollTimer:
    """When the next poll may be made."""

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


class QueueWatch:
    def __init__(
        self, scheduler: Scheduler, files: Files, court: Court, pace: PollTimer, clock: Callable[[], float],
        discard: Callable[[Sequence[Job]], None],
    ) -> None:  # fmt: skip
        self._scheduler, self._files, self._court = scheduler, files, court
        self._pace, self._clock, self._discard = pace, clock, discard
        self._queue = Register.of(())  # as it was at the last look
        self._looked_at = float("-inf")
        self._sent: dict[Identity, str] = {}  # what was acknowledged since then, and in which native job
        self._sightings: dict[AttemptKey, Sighting] = {}
        self._reasons: dict[str, str] = {}  # why jobs wait, by their native ids, if the queue does not show it
        self._reasons_at = float("-inf")
        self._trouble = ""

    def sight(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """The state of each; polls only when it is time to, or when a job has no state yet."""
        unsettled = [job for job in jobs if not self._is_gone(job)]
        if unsettled and (self._pace.is_due or (not self.in_trouble and self._strangers(unsettled))):
            begun_at = self._clock()
            self.look(unsettled)
            if not self.in_trouble:
                self._pace.answered(begun_at)
            self._sightings = {job.key: self._sightings[job.key] for job in jobs if job.key in self._sightings}
        return {job.key: self._tell(job) for job in jobs}

    def renew(self) -> None:
        """Poll the queue even without jobs of ours: other jobs may have left it."""
        if not self._pace.is_due:
            return
        begun_at = self._clock()
        try:
            self._read_queue()
            self._pace.answered(begun_at)
        except Unanswered as error:
            self.doubt(str(error))

    def look(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """Determine the state of these again. Jobs that were never submitted need no query."""
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
        """Native jobs of these jobs that are in the queue and have not ended. Raises Unanswered."""
        queue = self._queue_now()
        return {job.key: [native for native in queue.about(job) if not native.is_over] for job in jobs}

    def busy_batches(self) -> frozenset[str]:
        """Those with native jobs in the queue that have not ended. Raises Unanswered."""
        return self._queue_now().busy_batches

    def waiting(self, batches: Collection[str]) -> list[Native]:
        """Native jobs of these that are in the queue and have not started. Raises Unanswered."""
        found = (natives for (batch, _), natives in self._queue_now().natives.items() if batch in batches)
        return [native for natives in found for native in natives if native.stage in (Stage.WAITING, Stage.STUCK)]

    def doubt(self, text: str) -> None:
        """The scheduler did not answer: all is unknown until it does, and it is not polled for a while."""
        if self.in_trouble:
            return
        if not self._trouble:
            log.warning("%s does not answer: %s", self._scheduler.dialect.title, text)
        self._trouble = f"{self._scheduler.dialect.title} does not answer: {text}"
        self._pace.failed()

    @property
    def in_trouble(self) -> bool:
        """It did not answer, and it is too early to poll again."""
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
        """The known number of tasks of the user."""
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

    def _queue_now(self) -> Register:
        """Raises Unanswered."""
        try:
            self._refuse_in_trouble()
            if self._sent or self._clock() > self._looked_at + RECENT_S:
                self._read_queue()
        except Unanswered as error:
            self.doubt(str(error))
            raise
        return self._queue

    def _refuse_in_trouble(self) -> None:
        if self.in_trouble:
            raise Unanswered(self._trouble)

    def _judge(self, jobs: Sequence[Job]) -> None:
        queued = {job.key: self._queue.about(job) for job in jobs}
        for job in jobs:
            if not needs_trace(queued[job.key]):
                self.note(job, self._court.judge(Evidence(natives=queued[job.key])))
        self._add_reasons(jobs, queued)
        self._judge_by_traces([job for job in jobs if needs_trace(queued[job.key])], queued)
        self._give_up([job for job in jobs if self._is_gone(job)], queued)

    def _add_reasons(self, jobs: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        """Some schedulers report why a job waits by a separate command: called once in a while, for many at once."""
        first = {job: foremost(queued[job.key]) for job in jobs}
        waiting = {job: native for job, native in first.items() if native and native.stage is Stage.WAITING}
        if not self._scheduler.dialect.reasons_apart or not waiting:
            return
        if self._clock() >= self._reasons_at + REASONS_FOR_S:
            self._reasons = self._scheduler.explain(list(waiting.values())[:MOST_EXPLAINED])
            self._reasons_at = self._clock()
        for job, native in waiting.items():
            seen, reason = self._sightings.get(job.key), self._reasons.get(native.job)
            if seen is not None and reason and seen.presence is Presence.PENDING and not native.why:
                self.note(job, replace(seen, text=f"{seen.text}: {reason[:MOST_WORDS]}"))

    def _judge_by_traces(self, jobs: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        """Jobs that the scheduler reports as ended, or does not list."""
        if not jobs:
            return
        try:
            traces = self._files.look(jobs)
        except Unanswered as error:
            self._leave_open(jobs, error)
            return
        try:
            ended = [traces[job.key] for job in jobs if not _still_there(queued[job.key])]
            unrecorded = [trace for trace in ended if not trace.recorded]
            accounts = self._scheduler.accounts({name for trace in unrecorded for name in trace.names})
        except Unanswered as error:
            self._leave_open([job for job in jobs if not queued[job.key]], error)
            accounts, jobs = [], [job for job in jobs if queued[job.key]]
        told = Register.of(accounts)
        remains = []  # may still be alive, out of sight: if its runner reads the file, it finds the stop request
        for job in jobs:
            trace = traces[job.key]
            account = _telling(told.about(job))
            known = self._queue.knows(job, trace.accepted) or told.knows(job, trace.accepted)
            evidence = Evidence(natives=queued[job.key], account=account, trace=trace, array_is_known=known)
            self.note(job, self._court.judge(evidence))
            if trace.started and not trace.recorded and (evidence.is_given_up or self._is_gone(job)):
                remains.append(job)
        self._fence(remains)

    def _leave_open(self, jobs: Iterable[Job], error: Unanswered) -> None:
        for job in jobs:
            self.note(job, Sighting(presence=Presence.UNKNOWN, text=f"nothing is certain: {error}"))

    def _give_up(self, gone: Sequence[Job], queued: dict[AttemptKey, list[Native]]) -> None:
        """A job that we consider ended while the scheduler still has it must never start: fence and remove it."""
        lost = {job: native for job in gone if (native := _still_there(queued[job.key]))}
        if not lost:
            return
        reasons = self._scheduler.explain([native for native in lost.values() if native.stage is Stage.STUCK])
        for job, native in lost.items():
            if native.id in reasons:
                seen = self._sightings[job.key]
                self.note(job, replace(seen, text=f"{seen.text}: {reasons[native.id]}"))
        self._fence(list(lost))
        self._discard(list(lost))

    def _fence(self, jobs: Sequence[Job]) -> None:
        try:
            if jobs:
                self._files.fence([StopRequest(job=job, reason="lost", grace=0) for job in jobs], record=False)
        except Unanswered as error:
            log.warning("jobs that %s has given up could not be fenced: %s", self._scheduler.dialect.title, error)

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


def _telling(accounts: Sequence[Native]) -> Native | None:
    """Of several, the last one with a cause of the end: a job that was started again by mistake succeeds at once."""
    ended = [account for account in accounts if account.ending]
    return next(reversed(ended or accounts), None)


def _still_there(natives: Sequence[Native]) -> Native | None:
    native = foremost(natives)
    return native if native is not None and not native.is_over else None


def _identity(job: Job) -> Identity:
    return job.batch, job.index


@dataclass(frozen=True, kw_only=True, slots=True)
class Register:
    """From the answer of one query."""

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
        """All under its name; more than one after a repeated submit."""
        return self.natives.get((job.batch, job.index), [])

    def knows(self, job: Job, native_job: str) -> bool:
        """Whether the native job in which this one was acknowledged is listed."""
        return (job.batch, native_job) in self.arrays
