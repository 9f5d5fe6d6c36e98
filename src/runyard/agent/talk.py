"""The agent's side of the talk with its yard: when to say hello, when to sync, what to do when nobody answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard import errors
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.disks import Disks
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.pace import Pace
from runyard.agent.relay import Piece
from runyard.agent.slots import Slots
from runyard.backends.base import Distant, Presence, Queueing
from runyard.model.resources import Capacity
from runyard.model.wire import Claim, Hello, Report, SyncRequest, SyncResponse
from runyard.runner import kernel

LANE = "sync"
RENEWAL_S = 10.0  # the lease is renewed so often when there is nothing else to say
LINGER_S = 0.1  # a start waits so long to be reported: many runs end before
WORDLESS_S = 5.0  # a start that is seen, but has no room to say so, is reported after so long
LOOK_UP_S = 15.0  # a start at a site with a queue waits so long for its native id
LONG_TRANSFER_S = 10.0  # an attempt whose files travel for longer keeps no slots from others
REPEAT_S = 1.0  # an ending that the yard did not settle is reported again after so long
BUSY_GAP_S = 0.15  # between two syncs while there is enough to do: each costs the yard as much as some short runs
IDLE_GAP_S = 0.005
FIRST_PAUSE_S = 0.25  # after a failure, doubling
LONGEST_PAUSE_S = 15.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listener:
    """Who is told what the yard said."""

    owned: Callable[[list[Claim]], None]  # after hello: all that this agent has, and nothing else is its own
    answered: Callable[[SyncResponse], None]
    asking: Callable[[], list[Report]] = list  # about attempts that are nobody's any more


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a sync says that need not be said again once it is answered, and what it offers."""

    started: list[Attempt]
    pending: list[tuple[Attempt, str | None]]  # each with the reason why it waits, as it is told
    shown: list[Report]
    away: str  # why our node does not answer
    free: Capacity
    ahead: int


class Talk:
    def __init__(
        self, link: Link, errands: Errands, hello: Hello, book: Book, slots: Slots, pace: Pace, listener: Listener,
        clock: Callable[[], float], queue: Queueing | None = None, distant: Distant | None = None,
        disks: Disks | None = None,
    ) -> None:  # fmt: skip
        self._disks = disks
        self._queue, self._distant = queue, distant
        self._told_away = False
        self._link, self._errands, self._hello = link, errands, hello
        self._book, self._slots, self._pace = book, slots, pace
        self._listener, self._clock = listener, clock
        self.incarnation: int | None = None
        self.stale = False
        self._news = False
        self._more = False  # runs wait that would fit
        self._in_flight = False
        self._spoke_at = self._answered_at = float("-inf")
        self.heard_at = self._said_at = float("-inf")  # by `kernel.uptime`: when we said what the yard last answered
        self._not_before = float("-inf")
        self._pause = FIRST_PAUSE_S
        self._no_claims_until = float("-inf")

    def hear_news(self) -> bool:
        """There may be work or a stop order. From any thread. False when that was known already."""
        known, self._news = self._news, True
        return not known

    def take_nothing_for(self, seconds: float) -> None:
        self._no_claims_until = self._clock() + seconds

    def trouble(self, error: Exception) -> None:
        """The yard could not be reached or could not do its part: say hello again, after a pause."""
        if self.incarnation is not None or self._pause == FIRST_PAUSE_S:
            log.warning("the yard does not answer as it should: %s", error)
        self.begin_again(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)

    def begin_again(self, pause: float) -> None:
        """Say hello once more, after so many seconds."""
        self.incarnation = None
        self._not_before = self._clock() + pause

    def speak(self) -> None:
        if self._in_flight or self.stale or self._clock() < self.due_at():
            return
        self._in_flight = True
        self._spoke_at, self._said_at = self._clock(), kernel.uptime()
        if self.incarnation is None:
            self._errands.send(LANE, lambda: self._link.hello(self._hello), self._greeted)
        else:
            self._sync(self.incarnation)

    def append(self, piece: Piece) -> int:
        """Bytes of an attempt's file; the size that the yard holds afterwards. From any thread."""
        site, agent, incarnation = self._hello.site, self._hello.agent, self.incarnation
        try:
            return self._link.append(
                site, agent, incarnation or 0, piece.attempt.key, piece.file, piece.offset, piece.data
            )
        except errors.Stale as error:
            if incarnation is None or incarnation != self.incarnation:
                # We said hello again while this was on its way. It was refused for that, and the attempt is still ours.
                raise errors.Conflict(error.message) from None
            raise

    def expired_checkpoints(self, runs: Sequence[int]) -> dict[int, int]:
        """See `Link.expired_checkpoints`. From any thread."""
        return self._link.expired_checkpoints(self._hello.site, self._hello.agent, self.incarnation or 0, runs)

    def due_at(self) -> float:
        """When there will be a reason to speak. Infinity while an answer is on its way."""
        if self._in_flight or self.stale:
            return float("inf")
        if self.incarnation is None:
            # With a node that does not answer there is nothing to take up, and to say hello would count as life.
            return float("inf") if self._away() else self._not_before
        soon = self._spoke_at + (BUSY_GAP_S if self._is_busy() else IDLE_GAP_S)
        wishes = [self._answered_at + RENEWAL_S]
        if self._news or self._is_hungry() or self._told_away != bool(self._away()):
            wishes.append(soon)
        wishes += [max(soon, attempt.reported_at + REPEAT_S) for attempt in self._book.in_phase(Phase.TOLD)]
        if self._shown():
            wishes.append(soon)
        wishes += [max(soon, attempt.submitted_at + LINGER_S) for attempt in self._unreported()]
        if self._pending():
            wishes.append(soon)
        return max(min(wishes), self._not_before)

    def _away(self) -> str:
        """Why the node does not answer, while it does not."""
        return self._distant.trouble() if self._distant is not None else ""

    def _unreported(self) -> list[Attempt]:
        started = [a for a in self._book.in_phase(Phase.STARTED) if not a.told_running and not a.superseded]
        return [a for a in started if self._has_begun(a) and self._knows_where(a)]

    def _has_begun(self, attempt: Attempt) -> bool:
        """By its status, which a full disk may have no room for."""
        is_seen = attempt.made_started and attempt.sighting.presence is Presence.ALIVE
        return bool(attempt.status) or (is_seen and self._clock() >= attempt.submitted_at + WORDLESS_S)

    def _knows_where(self, attempt: Attempt) -> bool:
        """A start is told with its node and its native id, which a queue may take a moment to show."""
        return self._queue is None or bool(attempt.sighting.native_id) or self._clock() >= attempt.status_at + LOOK_UP_S

    def _pending(self) -> list[Attempt]:
        """Those that wait, for the site or in its own queue, or with what they left, for a reason that the yard has not
        heard."""
        waiting = self._book.in_phase(Phase.RECEIVED, Phase.READY, Phase.STARTED)
        untold = [a for a in waiting if not a.told_running and not a.superseded] + self._book.in_phase(Phase.OVER)
        return [a for a in untold if a.pending_detail and a.pending_detail != a.told_detail]

    def _shown(self) -> list[Report]:
        """Of outputs and checkpoints so far that the yard has, but does not know whose they are."""
        return [report for attempt in self._book if attempt.phase < Phase.OVER for report in attempt.shown.values()]

    def _is_busy(self) -> bool:
        return bool(self._book.in_phase(Phase.READY)) or self._slots.is_full

    def _is_hungry(self) -> bool:
        if not self._more:
            return False
        waiting = len(self._waiting())
        return waiting * 2 < self._ahead() or (waiting == 0 and not self._slots.is_full)

    def _ahead(self) -> int:
        """How many to hold ready, and only while runs end: whoever is held here goes before all that come later, with
        whatever priority, and short runs of before say nothing of those that wait after a rest."""
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
            attempt.reported_at = self._clock()
        return [
            *(attempt.running_report(self._hello.node, is_own=is_own) for attempt in said.started),
            *(attempt.pending_report() for attempt, _ in said.pending),
            *said.shown,
            *(attempt.report for attempt in ended if attempt.report),
            *self._listener.asking(),
        ]

    def _was_told(self, said: Said) -> None:
        self._told_away = bool(said.away)
        if not said.away:  # else it is our node's silence that counts
            self.heard_at = self._said_at
        for attempt in said.started:
            attempt.told_running = True
        for attempt, detail in said.pending:
            attempt.told_detail = detail
        for attempt in self._book:
            attempt.shown = {what: report for what, report in attempt.shown.items() if report not in said.shown}

    def _room(self) -> int | None:
        """A site with a queue of its own takes so many; those that wait here, or are being handed over, come first."""
        if self._queue is None:
            return None
        under_way = [attempt for attempt in self._book.in_phase(Phase.STARTED) if attempt.submitting]
        return max(0, self._queue.room() - len(self._waiting()) - len(under_way))

    def _offer(self) -> tuple[Capacity, int]:
        """Free slots, and how many attempts to take beyond them."""
        if self._clock() < self._no_claims_until or (self._disks is not None and self._disks.trouble()):
            return Capacity(cpus=0, memory=0), 0
        waiting, late = self._waiting(), self._clock() - LONG_TRANSFER_S
        travelling = [a for a in waiting if a.bringing and a.bringing_since is not None and a.bringing_since < late]
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
        self._news = True  # a hello brings what was ours; only a sync brings stop orders and new work
        self._listener.owned(claims)

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
