"""Stop jobs: by a request in their directory, and by the scheduler if the runner does not react or has not started.

The request is written at once, by the calling thread, also while another thread waits for the scheduler's answer; what
the scheduler is to do about it is left in `_letters` for that thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from runyard.backends.base import Job, StopRequest
from runyard.backends.batch.dialect import Unanswered
from runyard.backends.batch.files import Files
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.watch import QueueWatch
from runyard.model.wire import AttemptKey

DEAF_S = 30.0  # beyond the grace: a beat, and a minute-old view of a network file system, are not deafness
AGAIN_S = 15.0  # between two orders to the scheduler about the same job

log = logging.getLogger(__name__)


class Stopper:
    def __init__(self, scheduler: Scheduler, files: Files, clock: Callable[[], float]) -> None:
        self._scheduler, self._files, self._clock = scheduler, files, clock
        self._told: dict[AttemptKey, tuple[str, float]] = {}
        self._letters: deque[tuple[Job, bool]] = deque()  # for the scheduler to end; True: it never begins
        self._unwanted: dict[AttemptKey, Job] = {}  # what the scheduler shall end or forget
        self._ordered_at: dict[AttemptKey, float] = {}

    def tell(self, stops: Sequence[StopRequest]) -> None:
        """Write new requests. From any thread, one at a time."""
        new = [stop for stop in stops if self._told.get(stop.job.key) != (stop.reason, stop.grace)]
        try:
            fenced = self._files.fence(new) if new else []
        except Unanswered as error:
            log.warning("%d jobs could not be stopped: %s", len(new), error)
            return
        heard = [(stop, told) for stop, told in zip(new, fenced, strict=True) if told is not None]
        self._told.update((stop.job.key, (stop.reason, stop.grace)) for stop, _ in heard)
        self._letters.extend((stop.job, True) for stop, told in heard if told.prevented)
        waited = [(stop, stop.waited) for stop in stops] + [(stop, told.told) for stop, told in heard]
        self._letters.extend((stop.job, False) for stop, seconds in waited if seconds > stop.grace + DEAF_S)

    def prevented(self) -> list[AttemptKey]:
        """Process the requests written since. Returns jobs that had not started, and never will."""
        letters = [self._letters.popleft() for _ in range(len(self._letters))]
        self.discard(job for job, _ in letters)
        return [job.key for job, never_begins in letters if never_begins]

    def discard(self, jobs: Iterable[Job]) -> None:
        """Let the scheduler end these."""
        self._unwanted.update((job.key, job) for job in jobs)

    def press(self, watch: QueueWatch) -> None:
        """One command for all that are still in the queue; repeated until they are not."""
        now = self._clock()
        due = [job for key, job in self._unwanted.items() if now >= self._ordered_at.get(key, -AGAIN_S) + AGAIN_S]
        if not due:
            return
        self._ordered_at.update((job.key, now) for job in due)
        try:
            natives = watch.natives(due)
        except Unanswered:
            return
        for key, found in natives.items():
            if not found:
                del self._unwanted[key], self._ordered_at[key]
        there = [native for found in natives.values() for native in found]
        if there and not self._scheduler.cancel(there):
            log.warning("%s did not hear that %d jobs are to end", self._scheduler.dialect.title, len(there))
