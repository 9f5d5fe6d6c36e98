"""Look at all attempts that were started, and say what each of them is.

| `started` | exit record | the backend says   | the attempt is                                          |
|-----------|-------------|--------------------|---------------------------------------------------------|
| –         | yes         | –                  | over: settle by the record                              |
| no        | no          | absent             | not started: start it again                             |
| no        | no          | gone               | over without a record                                   |
| no        | no          | anything else      | pending                                                 |
| yes       | no          | gone               | over without a record                                   |
| yes       | no          | alive              | running                                                 |
| yes       | no          | anything else      | in doubt: nothing is done, until it has been silent long |

An attempt of which the yard knows that it ran, and which is absent, lost its directory: it is never started again.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence

from runyard.agent.attempts import Attempt, Phase
from runyard.backends.base import Backend, Presence, Sighting
from runyard.hosts.base import Known, Seen, Unreachable
from runyard.model.states import AttemptState

LIVELY_S = 0.06  # between two looks while output is fresh
QUIET_S = 0.2
FRESH_S = 2.0  # output counts as fresh for so long
TOGETHER_S = 0.02  # looks that are due within this time are done at once
POLL_S = 1.0  # between two questions to the backend
BIRTH_S = 10.0  # a job that was submitted makes `started` within this time, or is submitted again
SILENCE_S = 30.0  # an attempt in doubt whose status does not change for so long is ended

log = logging.getLogger(__name__)


class Verdict(enum.Enum):
    NOT_STARTED = enum.auto()
    PENDING = enum.auto()
    RUNNING = enum.auto()
    DOUBTFUL = enum.auto()
    OVER = enum.auto()


def judge(*, started: bool, recorded: bool, presence: Presence, was_running: bool = False) -> Verdict:
    if recorded or presence is Presence.GONE:
        return Verdict.OVER
    if started:
        return Verdict.RUNNING if presence is Presence.ALIVE else Verdict.DOUBTFUL
    if presence is not Presence.ABSENT:
        return Verdict.DOUBTFUL if was_running else Verdict.PENDING
    return Verdict.OVER if was_running else Verdict.NOT_STARTED


class Watch:
    """Gathers evidence into attempts: one scan and one poll for all that are due."""

    def __init__(self, backend: Backend, root: str, clock: Callable[[], float]) -> None:
        self._backend, self._root, self._clock = backend, root, clock
        self._pause = backend.host.pause
        self._every = max(POLL_S, self._pause)
        self._polled_at = -self._every
        self._turn = 0
        self._is_blind = False

    def look(self, attempts: Sequence[Attempt], noticed: set[str], *, with_bytes: bool) -> dict[str, Seen]:
        """Evidence of those that are due or noticed. What is returned, by place, also holds new bytes."""
        now = self._clock()
        polling = now >= self._polled_at + self._every
        due = [
            attempt
            for attempt in attempts
            if polling or attempt.look_at <= now + TOGETHER_S or attempt.job.directory in noticed
        ]
        self._turn += 1
        first = self._turn % max(1, len(due))  # a scan brings only so many bytes: everybody is first once
        found = self._see(due[first:] + due[:first], with_bytes=with_bytes)
        gone = self._poll([attempt for attempt in due if polling or attempt.job.directory in noticed])
        # A record may have been written between the scan and the proof that the job is gone.
        found |= self._see(gone, with_bytes=with_bytes)
        if polling:
            self._polled_at = now
        return found

    def poll_soon(self) -> None:
        """With the next look: somebody came of whom only the backend knows whether it lives."""
        self._polled_at = float("-inf")

    def next_look(self, attempts: Sequence[Attempt]) -> float:
        soonest = min((attempt.look_at for attempt in attempts), default=float("inf"))
        return min(soonest, self._polled_at + self._every) if attempts else soonest

    def _poll(self, attempts: list[Attempt]) -> list[Attempt]:
        """Ask the backend about those that left no record. Returns the ones that are gone."""
        started = [attempt for attempt in attempts if attempt.phase is Phase.STARTED]
        asked = [attempt for attempt in started if attempt.record is None or attempt.wants_word]
        if not asked:
            return []
        sightings = self._backend.poll([attempt.job for attempt in asked])
        for attempt in asked:
            attempt.sighting = sightings.get(attempt.key, Sighting(presence=Presence.UNKNOWN))
        return [attempt for attempt in asked if attempt.sighting.presence is Presence.GONE]

    def _see(self, attempts: list[Attempt], *, with_bytes: bool) -> dict[str, Seen]:
        """As `scan`. The time in which nothing can be seen does not count as an attempt's silence."""
        try:
            found = self.scan(attempts, with_bytes=with_bytes)
        except Unreachable as error:
            if not self._is_blind:
                log.warning("nothing is seen of runs: %s", error)
            now = self._clock()
            for attempt in attempts:
                attempt.drained, attempt.status_at, attempt.look_at = False, now, now + max(QUIET_S, self._pause)
            self._is_blind = True
            return {}
        self._is_blind = self._is_blind and not attempts
        return found

    def scan(self, attempts: list[Attempt], *, with_bytes: bool) -> dict[str, Seen]:
        """Evidence of all of these from their directories. Raises Unreachable."""
        if not attempts:
            return {}
        now = self._clock()
        by_place = {attempt.place: attempt for attempt in attempts}
        found = self._backend.host.scan(self._root, [_known(a, with_bytes=with_bytes) for a in attempts])
        for attempt in attempts:
            attempt.drained = with_bytes and not attempt.relaying
            attempt.look_at = now + max(self._pause, LIVELY_S if now < attempt.fresh_until else QUIET_S)
        for seen in found:
            _note(by_place[seen.directory], seen, now, max(self._pause, LIVELY_S))
        return {seen.directory: seen for seen in found}


def _known(attempt: Attempt, *, with_bytes: bool) -> Known:
    """While bytes are on their way the offsets are not known, so only the status is asked for."""
    asking = with_bytes and not attempt.relaying
    offsets = {name: at for name, at in attempt.offsets.items() if at is not None} if asking else {}
    return Known(directory=attempt.place, offsets=offsets, version=attempt.version, started=attempt.made_started)


def _note(attempt: Attempt, seen: Seen, now: float, soon: float) -> None:
    attempt.made_started = seen.started
    if seen.status is not None:
        attempt.version, attempt.status, attempt.status_at = seen.version, seen.status, now
    if seen.data:
        attempt.drained = False
        attempt.fresh_until = now + FRESH_S
        attempt.look_at = now + soon


def verdict_on(attempt: Attempt, now: float) -> Verdict:
    """The table, and the two deadlines for those that are neither seen to run nor proven to be over."""
    found = judge(
        started=attempt.made_started,
        recorded=attempt.record is not None,
        presence=attempt.sighting.presence,
        was_running=attempt.claim.state is AttemptState.RUNNING,
    )
    if found is Verdict.NOT_STARTED and now < attempt.submitted_at + BIRTH_S:
        return Verdict.PENDING
    return found


def is_silent(attempt: Attempt, now: float) -> bool:
    """In doubt for too long."""
    return now >= max(attempt.status_at, attempt.submitted_at) + SILENCE_S
