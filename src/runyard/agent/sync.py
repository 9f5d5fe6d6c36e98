"""The agent's side of the protocol with its yard: when to say hello, when to sync, what to do without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard import errors
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.clean.disks import Disks
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.part import Part
from runyard.agent.report.log import FileChunk
from runyard.agent.run.pace import Pace
from runyard.agent.run.slots import Slots
from runyard.backends.base import Distant, Presence, Queueing
from runyard.model.resources import Capacity
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Hello, Report, SyncRequest, SyncResponse
from runyard.runner import kernel

LANE = "sync"
RENEWAL_S = 10.0  # the lease is renewed this often if there is nothing else to report
LINGER_S = 0.1  # a start is reported after this delay: many runs end before
WORDLESS_S = 5.0  # a start whose status file a full disk prevents is reported after this delay
LOOK_UP_S = 15.0  # a start at a site with a queue waits so long for its native id
LONG_TRANSFER_S = 10.0  # an attempt whose transfers take longer reserves no slots
REPEAT_S = 1.0  # an ending that the yard did not settle is reported again after so long
BUSY_GAP_S = 0.15  # between two syncs while there is enough to do: each costs the yard as much as some short runs
IDLE_GAP_S = 0.005
FIRST_PAUSE_S = 0.25  # after a failure, doubling
LONGEST_PAUSE_S = 15.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncListener:
    """Callbacks for the yard's answers."""

    owned: Callable[[list[Claim]], None]  # after hello: exactly the attempts of this agent
    answered: Callable[[SyncResponse], None]
    asking: Callable[[], list[Report]] = list  # about attempts that have no owner any more


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """The contents of a sync: reports that are complete once it is answered, and offered slots."""

    started: list[Attempt]
    pending: list[tuple[Attempt, str | None]]  # each with the reported reason of waiting
    shown: list[tuple[Attempt, Report]]
    away: str  # why our node does not answer
    free: Capacity
    ahead: int


class Sync(Part):
    def __init__(
        self, link: Link, errands: Errands, hello: Hello, book: Book, slots: Slots, pace: Pace, listener: SyncListener,
        clock: Callable[[], float], queue: Queueing | None = None, distant: Distant | None = None,
        disks: Disks | None = None, no_claims_until: Callable[[], float] = lambda: float("-inf"),
    ) -> None:  # fmt: skip
        self._disks, self._no_claims_until = disks, no_claims_until
        self._queue, self._distant = queue, distant
        self._told_away = False
        self._link, self._errands, self._hello = link, errands, hello
        self._book, self._slots, self._pace = book, slots, pace
        self._listener, self._clock = listener, clock
        self.incarnation: int | None = None
        self.stale = False
        self._news = False
        self._more = False  # queued runs would fit
        self._in_flight = False
        self._spoke_at = self._answered_at = float("-inf")
        self.heard_at = self._said_at = float("-inf")  # by `kernel.uptime`: when the last answered sync was sent
        self._not_before = float("-inf")
        self._pause = FIRST_PAUSE_S

    def hear_news(self) -> bool:
        """There may be work or a stop request. From any thread. False if that was known already."""
        known, self._news = self._news, True
        return not known

    def trouble(self, error: Exception) -> None:
        """The yard could not be reached or answered with an error: say hello again, after a pause."""
        if self.incarnation is not None or self._pause == FIRST_PAUSE_S:
            log.warning("the yard does not answer correctly: %s", error)
        self.begin_again(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)

    def begin_again(self, pause: float) -> None:
        """Say hello once more, after so many seconds."""
        self.incarnation = None
        self._not_before = self._clock() + pause

    def report_again(self, attempt: Attempt) -> None:
        """Report it again; the yard answers with its state."""
        attempt.told.running = False

    def advance(self) -> None:
        if self._in_flight or self.stale or self._clock() < self.next_due():
            return
        self._in_flight = True
        self._spoke_at, self._said_at = self._clock(), kernel.uptime()
        if self.incarnation is None:
            self._errands.send(LANE, lambda: self._link.hello(self._hello), self._greeted)
        else:
            self._sync(self.incarnation)

    def append(self, piece: FileChunk) -> int:
        """Append bytes to an attempt's file; returns the size that the yard then has. From any thread."""
        site, agent, incarnation = self._hello.site, self._hello.agent, self.incarnation
        try:
            return self._link.append(
                site, agent, incarnation or 0, piece.attempt.key, piece.file, piece.offset, piece.data
            )
        except errors.Stale as error:
            if incarnation is None or incarnation != self.incarnation:
                # It was refused because of a hello that was sent meanwhile, and the attempt is still ours.
                raise errors.Conflict(error.message) from None
            raise

    def expired_checkpoints(self, runs: Sequence[int]) -> dict[int, int]:
        """See `Link.expired_checkpoints`. From any thread."""
        return self._link.expired_checkpoints(self._hello.site, self._hello.agent, self.incarnation or 0, runs)

    def next_due(self) -> float:
        """When there is something to report. Infinity while an answer is outstanding."""
        if self._in_flight or self.stale:
            return float("inf")
        if self.incarnation is None:
            # With a node that does not answer no attempt can be resumed, and a hello would count as a sign of life.
            return float("inf") if self._away() else self._not_before
        soon = self._spoke_at + (BUSY_GAP_S if self._is_busy() else IDLE_GAP_S)
        wishes = [self._answered_at + RENEWAL_S]
        if self._news or self._is_hungry() or self._told_away != bool(self._away()):
            wishes.append(soon)
        wishes += [max(soon, attempt.told.reported_at + REPEAT_S) for attempt in self._book.in_phase(Phase.TOLD)]
        if self._shown():
            wishes.append(soon)
        wishes += [max(soon, attempt.submitted_at + LINGER_S) for attempt in self._unreported()]
        if self._pending():
            wishes.append(soon)
        return max(min(wishes), self._not_before)

    def _away(self) -> str:
        """Why the node does not answer; empty if it does."""
        return self._distant.trouble() if self._distant is not None else ""

    def _unreported(self) -> list[Attempt]:
        started = [a for a in self._book.in_phase(Phase.STARTED) if not a.told.running and not a.superseded]
        return [a for a in started if self._has_begun(a) and self._knows_where(a)]

    def _has_begun(self, attempt: Attempt) -> bool:
        """By its status file, which may be missing on a full disk."""
        is_seen = attempt.made_started and attempt.sighting.presence is Presence.ALIVE
        return bool(attempt.status) or (is_seen and self._clock() >= attempt.submitted_at + WORDLESS_S)

    def _knows_where(self, attempt: Attempt) -> bool:
        """A start is reported with its node and its native id, which a queue may take a moment to show."""
        return self._queue is None or bool(attempt.sighting.native_id) or self._clock() >= attempt.status_at + LOOK_UP_S

    def _pending(self) -> list[Attempt]:
        """Attempts that wait, for the site, in its queue or with their uploads, for a reason that was not reported
        yet."""
        waiting = self._book.in_phase(Phase.RECEIVED, Phase.READY, Phase.STARTED)
        untold = [a for a in waiting if not a.told.running and not a.superseded] + self._book.in_phase(Phase.OVER)
        return [a for a in untold if a.pending_detail and a.pending_detail != a.told.detail]

    def _shown(self) -> list[tuple[Attempt, Report]]:
        """Reports of uploaded outputs and checkpoints that the yard has not received."""
        return [(attempt, report) for attempt in self._book if attempt.phase < Phase.OVER for report in attempt.untold]

    def _is_busy(self) -> bool:
        return bool(self._book.in_phase(Phase.READY)) or self._slots.is_full

    def _is_hungry(self) -> bool:
        if not self._more:
            return False
        waiting = len(self._waiting())
        return waiting * 2 < self._ahead() or (waiting == 0 and not self._slots.is_full)

    def _ahead(self) -> int:
        """How many attempts to claim in advance, and only while runs end: a claimed attempt precedes all later ones,
        whatever their priority, and earlier short runs say nothing about those queued after a pause."""
        return self._pace.ahead() if self._book.in_phase(Phase.OVER, Phase.TOLD) else 0

    def _waiting(self) -> list[Attempt]:
        return self._book.in_phase(Phase.RECEIVED, Phase.READY)

    def _sync(self, incarnation: int) -> None:
        self._news = False
        said = self._to_say()
        request = self._request(incarnation, said)

        def answered(response: SyncResponse, error: Exception | None) -> None:
            self._in_flight = False
            if error is not None:
                self._failed(error)
                return
            self._was_told(said)
            if said.free.cpus > 0 or said.free.elastic or said.ahead > 0:
                self._more = response.more and bool(response.claims)
            self._heard()
            self._listener.answered(response)

        self._errands.send(LANE, lambda: self._link.sync(request), answered)

    def _to_say(self) -> Said:
        pending, away = self._pending(), self._away()
        free, ahead = (Capacity(cpus=0, memory=0), 0) if away else self._offer()
        return Said(
            started=self._unreported(), pending=[(attempt, attempt.pending_detail) for attempt in pending],
            shown=self._shown(), away=away, free=free, ahead=ahead,
        )  # fmt: skip

    def _request(self, incarnation: int, said: Said) -> SyncRequest:
        return SyncRequest(
            site=self._hello.site, agent=self._hello.agent, incarnation=incarnation, free=said.free, ahead=said.ahead,
            room=self._room(), away=said.away, disk=self._disks.worst() if self._disks else None,
            reports=self._reports(said),
        )  # fmt: skip

    def _reports(self, said: Said) -> list[Report]:
        is_own, ended = not self._hello.total.elastic, self._book.in_phase(Phase.TOLD)
        for attempt in ended:
            attempt.told.reported_at = self._clock()
        return [
            *(_running(attempt, self._hello.node, is_own=is_own) for attempt in said.started),
            *(_pending(attempt) for attempt, _ in said.pending),
            *(report for _, report in said.shown),
            *(attempt.report for attempt in ended if attempt.report),
            *self._listener.asking(),
        ]

    def _was_told(self, said: Said) -> None:
        self._told_away = bool(said.away)
        if not said.away:  # otherwise the node's silence counts
            self.heard_at = self._said_at
        for attempt in said.started:
            attempt.told.running = True
        for attempt, detail in said.pending:
            attempt.told.detail = detail
        for attempt, report in said.shown:
            attempt.told.shown = tuple(known for known in (*attempt.told.shown, report) if known in attempt.shown)

    def _room(self) -> int | None:
        """How many more a site with its own queue accepts; attempts that wait here or are submitted now come first."""
        if self._queue is None:
            return None
        under_way = [attempt for attempt in self._book.in_phase(Phase.STARTED) if attempt.submitting]
        return max(0, self._queue.room() - len(self._waiting()) - len(under_way))

    def _offer(self) -> tuple[Capacity, int]:
        """Free slots, and how many attempts to claim beyond them."""
        if self._clock() < self._no_claims_until() or (self._disks is not None and self._disks.trouble()):
            return Capacity(cpus=0, memory=0), 0
        waiting, late = self._waiting(), self._clock() - LONG_TRANSFER_S
        travelling = [a for a in waiting if a.travels_since is not None and a.travels_since < late]
        free = self._slots.to_announce(
            (attempt.claim.resources for attempt in waiting if attempt not in travelling),
            (attempt.claim.resources for attempt in travelling),
        )
        return free, max(0, self._ahead() - len(waiting))

    def _greeted(self, answer: tuple[int, list[Claim]] | None, error: Exception | None) -> None:
        self._in_flight = False
        if error is not None or answer is None:
            self._failed(error or errors.YardUnreachable())
            return
        self.incarnation, claims = answer
        self.heard_at = self._said_at
        log.info("agent %s of site %s: incarnation %d", self._hello.agent, self._hello.site, self.incarnation)
        self._heard()
        self._news = True  # a hello returns our attempts; only a sync returns stop requests and new work
        self._listener.owned(claims)
        for claim in claims:
            if (attempt := self._book.get(claim.key)) is not None:
                attempt.told.running = claim.state is AttemptState.RUNNING

    def _heard(self) -> None:
        self._answered_at = self._clock()
        self._not_before = float("-inf")
        self._pause = FIRST_PAUSE_S

    def _failed(self, error: Exception) -> None:
        if isinstance(error, errors.Stale) and self.incarnation is not None:
            log.error("this agent stops: %s", error)
            self.stale = True
        else:
            self.trouble(error)


def _running(attempt: Attempt, node: str, *, is_own: bool) -> Report:
    """`is_own`: it runs on the agent's node, whose name the agent knows."""
    own = None if is_own else (attempt.status or {}).get("node")
    return Report(
        key=attempt.key, state=AttemptState.RUNNING, node=attempt.sighting.node or own or node,
        granted=attempt.grant.to_json() if attempt.grant else None, started_at=attempt.started_at,
        native_id=attempt.sighting.native_id,
    )  # fmt: skip


def _pending(attempt: Attempt) -> Report:
    state = AttemptState.SUBMITTED if attempt.phase >= Phase.STARTED else AttemptState.CLAIMED
    return Report(key=attempt.key, state=state, detail=attempt.pending_detail, native_id=attempt.sighting.native_id)
