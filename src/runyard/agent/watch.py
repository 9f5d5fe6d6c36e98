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
from runyard.agent.errands import Errands
from runyard.backends.base import Backend, Distant, Presence, Queueing, Sighting
from runyard.hosts.base import Known, Seen, Unreachable
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey

LANE = "backend"
LIVELY_S = 0.06  # between two looks while output is fresh
QUIET_S = 0.2
FRESH_S = 2.0  # output counts as fresh for so long
SHARE = 10  # a look that takes 50 ms, at a thousand directories, is made twice a second at most
TOGETHER_S = 0.02  # looks that are due within this time are done at once
BLIND_S = 1.0  # while nothing can be seen
CONTACT_S = 10.0  # a machine that may be away is asked so often, also when nothing runs there
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
    """Gathers evidence into attempts: one scan and one poll for all that are due.

    A scheduler may take most of a minute to say nothing. So a poll is an errand: while it is under way, what was said
    last counts, and directories are looked into as ever.
    """

    def __init__(self, backend: Backend, root: str, errands: Errands, clock: Callable[[], float]) -> None:
        self._backend, self._root, self._errands, self._clock = backend, root, errands, clock
        self._queue = backend if isinstance(backend, Queueing) else None
        self._pause = backend.host.pause
        self._every = max(POLL_S, self._pause)
        self._polled_at = -self._every
        self._polling = False  # a poll is under way
        self._owes_poll = False
        self._gone: list[Attempt] = []  # proven since the last look
        self._contact_at = float("-inf") if isinstance(backend, Distant) else float("inf")  # when to ask it anyway
        self._turn = 0
        self._is_blind = False

    def look(self, attempts: Sequence[Attempt], noticed: set[str], *, with_bytes: bool) -> dict[str, Seen]:
        """Evidence of those that are due or noticed. What is returned, by place, also holds new bytes."""
        now = self._clock()
        polling = not self._polling and now >= self._polled_at + self._every
        due = [
            attempt
            for attempt in attempts
            if polling or attempt.look_at <= now + TOGETHER_S or attempt.job.directory in noticed
        ]
        self._turn += 1
        first = self._turn % max(1, len(due))  # a scan brings only so many bytes: everybody is first once
        found = self._see(due[first:] + due[:first], with_bytes=with_bytes)
        if polling:
            self._polled_at = now
        self._poll([attempt for attempt in due if polling or attempt.job.directory in noticed])
        # A record may have been written between the scan and the proof that the job is gone.
        gone, self._gone = self._gone, []
        return found | self._see(gone, with_bytes=with_bytes)

    def poll_soon(self) -> None:
        """With the next look: somebody came of whom only the backend knows whether it lives, or has to go."""
        self._polled_at, self._owes_poll = float("-inf"), True

    def next_look(self, attempts: Sequence[Attempt]) -> float:
        if self._gone:
            return self._clock()
        contact = float("inf") if self._polling else self._contact_at
        soonest = min((attempt.look_at for attempt in attempts), default=contact)
        polls = not self._polling and (attempts or self._polls_anyway())
        return min(soonest, self._polled_at + self._every) if polls else soonest

    def _polls_anyway(self) -> bool:
        """Also when no attempt needs it: to have it done at once, or because only a look can tell that a queue which
        was full has room again, or whether a machine that may be away is there."""
        is_due = self._clock() >= self._contact_at
        return self._owes_poll or is_due or (self._queue is not None and self._queue.room() <= 0)

    def _poll(self, attempts: list[Attempt]) -> None:
        """Ask the backend about those that left no record."""
        started = [attempt for attempt in attempts if attempt.phase is Phase.STARTED and not attempt.submitting]
        asked = [attempt for attempt in started if attempt.record is None or attempt.wants_word]
        if self._polling or not (asked or self._polls_anyway()):
            return
        self._polling, self._owes_poll = True, False
        if self._contact_at < float("inf"):
            self._contact_at = self._clock() + CONTACT_S
        jobs = [attempt.job for attempt in asked]

        def done(sightings: dict[AttemptKey, Sighting], error: Exception | None) -> None:
            self._polling = False
            if error is not None:
                raise error
            self._take(asked, sightings)

        self._errands.send(LANE, lambda: self._backend.poll(jobs), done)

    def _take(self, asked: list[Attempt], sightings: dict[AttemptKey, Sighting]) -> None:
        """Of one that was handed over meanwhile this is no news any more."""
        for attempt in asked:
            if not attempt.submitting:
                attempt.sighting = sightings.get(attempt.key, Sighting(presence=Presence.UNKNOWN))
                if attempt.sighting.presence is Presence.GONE:
                    self._gone.append(attempt)

    def _see(self, attempts: list[Attempt], *, with_bytes: bool) -> dict[str, Seen]:
        """As `scan`. The time in which nothing can be seen does not count as an attempt's silence."""
        try:
            found = self.scan(attempts, with_bytes=with_bytes)
        except Unreachable as error:
            if not self._is_blind:
                log.warning("nothing is seen of runs: %s", error)
            now = self._clock()
            for attempt in attempts:
                attempt.drained, attempt.status_at, attempt.look_at = False, now, now + max(BLIND_S, self._pause)
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
        pause = max(self._pause, min(self._every, SHARE * (self._clock() - now)))
        for attempt in attempts:
            attempt.drained = with_bytes and not attempt.relaying
            attempt.has_more = attempt.has_more and not attempt.drained
            attempt.look_at = now + max(pause, LIVELY_S if now < attempt.fresh_until else QUIET_S)
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
    if found is Verdict.NOT_STARTED and (attempt.submitting or now < attempt.submitted_at + BIRTH_S):
        return Verdict.PENDING
    return found


def is_silent(attempt: Attempt, now: float) -> bool:
    """In doubt for too long."""
    return now >= max(attempt.status_at, attempt.submitted_at) + SILENCE_S
