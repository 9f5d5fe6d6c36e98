"""Look at all started attempts, and decide on the state of each.

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
from collections.abc import Callable, Iterable, Sequence

from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands
from runyard.agent.part import Part
from runyard.backends.base import Backend, Distant, Notifier, Presence, Queueing, Sighting
from runyard.hosts.base import KnownFiles, Seen, Unreachable
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey

LANE = "backend"
LIVELY_S = 0.06  # between two looks while output is fresh
QUIET_S = 0.2
FRESH_S = 2.0  # output counts as fresh for so long
SHARE = 10  # a look that takes 50 ms, at a thousand directories, is made twice a second at most
TOGETHER_S = 0.02  # looks that are due within this time are done at once
BLIND_S = 1.0  # while nothing can be seen
CONTACT_S = 10.0  # a machine that may be unreachable is polled this often, also when nothing runs there
POLL_S = 1.0  # between two polls of the backend
BIRTH_S = 10.0  # a submitted job creates `started` within this time, or is submitted again
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


class Watch(Part):
    """Collects evidence of attempts: one scan and one poll for all that are due.

    A scheduler may take most of a minute to answer. So a poll is an errand: meanwhile its last answer counts, and
    directories are scanned as usual. That a job is gone counts from the next scan on, which finds its files: the answer
    may arrive between any two parts of a tick.
    """

    def __init__(
        self, backend: Backend, root: str, errands: Errands, book: Book, clock: Callable[[], float],
        may_relay: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`may_relay`: whether new bytes can be uploaded now."""
        self._backend, self._root, self._errands, self._clock = backend, root, errands, clock
        self._book, self._may_relay = book, may_relay
        self.seen: dict[str, Seen] = {}  # by directory: what the last scan found, with new bytes
        self._queue = backend if isinstance(backend, Queueing) else None
        self._pause = backend.host.pause
        self._every = max(POLL_S, self._pause)
        self._polled_at = -self._every
        self._polling = False  # a poll is running
        self._owes_poll = False
        self._gone: dict[Attempt, Sighting] = {}  # proven since the last look
        self._contact_at = float("-inf") if isinstance(backend, Distant) else float("inf")  # when to ask it anyway
        self._turn = 0
        self._is_blind = False

    def advance(self) -> None:
        noticed = self._backend.notices() if isinstance(self._backend, Notifier) else set()
        self.seen = self.look(self._watched(), noticed, with_bytes=self._may_relay())

    def next_due(self) -> float:
        return self.next_look(self._watched())

    def next_due_of_ended(self) -> float:
        """Like `next_due`, without relaying new output of running attempts."""
        return self.next_look([a for a in self._watched() if a.phase is Phase.OVER or a.has_more])

    def wake_fds(self) -> list[int]:
        return self._backend.wake_fds() if isinstance(self._backend, Notifier) else []

    def look_now(self, attempt: Attempt) -> None:
        """Scan it at the next opportunity."""
        attempt.evidence.look_at = min(attempt.evidence.look_at, self._clock())

    def handed_over(self, attempts: Iterable[Attempt], look_at: float) -> None:
        """Submitted to the backend: look at them again at that time."""
        for attempt in attempts:
            attempt.evidence.look_at = look_at

    def forget_sighting(self, attempts: Iterable[Attempt]) -> None:
        """The backend has them now: earlier evidence is obsolete."""
        for attempt in attempts:
            self._gone.pop(attempt, None)
            attempt.evidence.sighting = Sighting(presence=Presence.UNKNOWN)

    def _watched(self) -> list[Attempt]:
        return self._book.in_phase(Phase.STARTED, Phase.OVER)

    def look(self, attempts: Sequence[Attempt], noticed: set[str], *, with_bytes: bool) -> dict[str, Seen]:
        """Evidence of those that are due or noticed. The result, by directory, also has new bytes."""
        now = self._clock()
        polling = not self._polling and now >= self._polled_at + self._every
        due = [
            attempt
            for attempt in attempts
            if polling or attempt.evidence.look_at <= now + TOGETHER_S or attempt.job.directory in noticed
        ]
        self._turn += 1
        first = self._turn % max(1, len(due))  # a scan returns a limited number of bytes: each attempt is first in turn
        found = self._see(due[first:] + due[:first], with_bytes=with_bytes)
        if polling:
            self._polled_at = now
        self._poll([attempt for attempt in due if polling or attempt.job.directory in noticed], at_interval=polling)
        return found | self._see(self._take_gone(), with_bytes=with_bytes)

    def _take_gone(self) -> list[Attempt]:
        """To be scanned now: a record may have been written between the last scan and the proof."""
        gone, self._gone = self._gone, {}
        for attempt, sighting in gone.items():
            attempt.evidence.sighting = sighting
        return list(gone)

    def poll_soon(self) -> None:
        """With the next look: there is an attempt whose state only the backend knows, or which must be stopped."""
        self._polled_at, self._owes_poll = float("-inf"), True

    def next_look(self, attempts: Sequence[Attempt]) -> float:
        if self._gone:
            return self._clock()
        contact = float("inf") if self._polling else self._contact_at
        soonest = min((attempt.evidence.look_at for attempt in attempts), default=contact)
        polls = not self._polling and (attempts or self._polls_anyway(at_interval=True))
        return min(soonest, self._polled_at + self._every) if polls else soonest

    def _polls_anyway(self, *, at_interval: bool) -> bool:
        """Also if no attempt needs it: on request, or because only a poll shows that a full queue has room again or
        that an unreachable machine answers. A full queue is polled at intervals: each answer wakes the agent."""
        is_due = self._clock() >= self._contact_at
        is_full = self._queue is not None and self._queue.room() <= 0
        return self._owes_poll or is_due or (at_interval and is_full)

    def _poll(self, attempts: list[Attempt], *, at_interval: bool) -> None:
        """Poll the backend for attempts without a record."""
        started = [attempt for attempt in attempts if attempt.phase is Phase.STARTED and not attempt.submitting]
        asked = [attempt for attempt in started if attempt.record is None or attempt.wants_word]
        if self._polling or not (asked or self._polls_anyway(at_interval=at_interval)):
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
        """The answer is obsolete for attempts that were submitted meanwhile."""
        for attempt in asked:
            sighting = sightings.get(attempt.key, Sighting(presence=Presence.UNKNOWN))
            if attempt.submitting:
                continue
            if sighting.presence is Presence.GONE:
                self._gone[attempt] = sighting
            else:
                attempt.evidence.sighting = sighting

    def _see(self, attempts: list[Attempt], *, with_bytes: bool) -> dict[str, Seen]:
        """Like `scan`. Time in which nothing can be seen does not count as an attempt's silence."""
        try:
            found = self.scan(attempts, with_bytes=with_bytes)
        except Unreachable as error:
            if not self._is_blind:
                log.warning("the directories of runs cannot be read: %s", error)
            now = self._clock()
            for attempt in attempts:
                seen = attempt.evidence
                seen.drained, seen.status_at, seen.look_at = False, now, now + max(BLIND_S, self._pause)
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
            evidence = attempt.evidence
            evidence.drained = with_bytes and _is_asked_for_all(attempt)
            evidence.look_at = now + max(pause, LIVELY_S if now < evidence.fresh_until else QUIET_S)
        for seen in found:
            _note(by_place[seen.directory], seen, now, max(self._pause, LIVELY_S))
        return {seen.directory: seen for seen in found}


def _is_asked_for_all(attempt: Attempt) -> bool:
    """A file whose offset only the yard knows is not read yet."""
    return not attempt.is_relaying and None not in attempt.offsets.values()


def _known(attempt: Attempt, *, with_bytes: bool) -> KnownFiles:
    """During an upload the offsets are not known, so only the status is requested."""
    asking = with_bytes and not attempt.is_relaying
    offsets = {name: at for name, at in attempt.offsets.items() if at is not None} if asking else {}
    return KnownFiles(
        directory=attempt.place, offsets=offsets, version=attempt.evidence.version, started=attempt.made_started
    )


def _note(attempt: Attempt, seen: Seen, now: float, soon: float) -> None:
    evidence = attempt.evidence
    evidence.made_started = seen.started
    if seen.status is not None:
        evidence.version, evidence.status, evidence.status_at = seen.version, seen.status, now
    if seen.data:
        evidence.drained = False
        evidence.fresh_until = now + FRESH_S
        evidence.look_at = now + soon


def verdict_on(attempt: Attempt, now: float) -> Verdict:
    """The table, and the two deadlines for attempts that are neither seen to run nor proven to have ended."""
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
