"""An agent serves one site: it claims, stages, starts, watches, relays and reports. Each pass is one `tick`.

It may be killed between any two lines. What it was doing stands in the attempts' directories and in the yard, and the
next incarnation takes up from there.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from runyard import errors
from runyard.agent import disks, environment, watch
from runyard.agent.attempts import SUPERSEDED, Attempt, Book, Phase
from runyard.agent.checkpoints import Checkpoints, shares_directory
from runyard.agent.current import Current
from runyard.agent.disks import ANY_ROOM, Disks, Room
from runyard.agent.downloads import Downloads
from runyard.agent.errands import Errands, NoErrands, ThreadedErrands
from runyard.agent.expiry import Expiry
from runyard.agent.fetching import NOTHING, Fetcher
from runyard.agent.finish import Finisher, hold_up
from runyard.agent.identity import Identity, durable_name, of_this_machine
from runyard.agent.leaving import Leaving
from runyard.agent.link import Link
from runyard.agent.pace import Pace
from runyard.agent.permits import Permits
from runyard.agent.pythons import Pythons, place_of
from runyard.agent.relay import Relay
from runyard.agent.slots import Slots
from runyard.agent.stage import Stager
from runyard.agent.staging import Staging, Store, is_staged
from runyard.agent.start import Starter
from runyard.agent.stops import Stops
from runyard.agent.talk import Listener, Talk
from runyard.agent.tidy import Tidy
from runyard.agent.upkeep import Upkeep
from runyard.agent.wake import Wake
from runyard.agent.watch import Verdict, Watch
from runyard.backends.base import Backend, Distant, Notifier, Presence, Queueing
from runyard.hosts.base import Seen, Unreachable
from runyard.model import cache_limit
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Claim, SyncResponse

DISK_PAUSE_S = 30.0  # no new work for so long after the disk was full
SITE_PAUSE_S = 5.0  # after the site could not be reached
AFTER_CRASH_S = 1.0
WORD_S = 45.0  # how long a scheduler may take to say why it ended something

log = logging.getLogger(__name__)


class Agent:
    def __init__(
        self,
        link: Link,
        backend: Backend,
        directory: Path,
        site: str,
        total: Capacity,
        *,
        clock: Callable[[], float] = time.monotonic,
        errands: Errands | None = None,
        environ: Mapping[str, str] = os.environ,
        described: SiteSpec | None = None,
        root: str | None = None,
        identity: Identity | None = None,
        lent: bool = False,
        room: Room = ANY_ROOM,
        fetcher: Fetcher = NOTHING,
    ) -> None:
        """`directory` is the agent's own; `root` that of the attempts, where they are on another machine; `identity`
        says who it is, where its runs do not execute here; `room` what is said of disks, `fetcher` how files come from
        the web. A link that is `lent` is somebody else's to close."""
        # A cluster has one live agent, wherever it runs: of agents with one name only the newest may speak.
        who = identity or of_this_machine(site if total.elastic else durable_name(directory))
        root, said = root or os.fspath(directory / "runs"), described or SiteSpec()
        base = environment.inherited(environ)
        self.name, self.site = who.name, site
        self._link, self._backend, self._clock, self._directory = link, backend, clock, directory
        self._node, self._lent = who.node, lent
        self._wake = Wake()
        self._errands = errands or ThreadedErrands(self._wake.ring)
        self._book, self._slots, self._pace = Book(), Slots(total), Pace()
        self._seen: dict[str, Seen] = {}
        own_node = None if total.elastic else who.node
        self._stager = Stager(backend.host, root, total, base, described, room.scratch, own_node)
        self._disks = Disks(backend.host, [root], room.reserve, self._errands, clock)
        if not total.elastic:  # what compute nodes of a cluster have, only they know
            self._disks.watch_scratch(disks.scratch_base(room, {} if backend.host.copies else base))
        self._store = Store(root, self.name, self._book, lambda: self._talk.incarnation)
        self._watch_over(root)
        self._clear_up(said)
        self._starter = self._build_starter(said, environ, fetcher)
        self._talk = self._build_talk(who, total)
        self._bring_back(own_node)
        self._see_to_checkpoints(said, total)
        link.on_news(site, self.wake)

    def _watch_over(self, root: str) -> None:
        """The parts that see what becomes of attempts, and end them."""
        self._queue = self._backend if isinstance(self._backend, Queueing) else None
        self._waiting = self._errands if self._queue is not None else NoErrands()  # only schedulers make one wait
        self._watch = Watch(self._backend, root, self._waiting, self._clock)
        self._relay = Relay(self._errands, self._clock)
        self._stops = Stops(self._backend, self._book, self._watch.poll_soon, self._clock)
        self._permits = Permits(self._backend, self._book, lambda: self._talk.heard_at, self._clock)

    def _clear_up(self, said: SiteSpec) -> None:
        """The parts that remove what nobody needs any more."""
        self._limit = cache_limit.parse(said.node_option(self._node, "cache_limit"))
        usual, notes = said.node_option(self._node, "keep"), self._directory / "leaving.jsonl"
        self._upkeep = Upkeep(
            self._backend.host, self._errands, self._store, self._limit, self._clock, self._disks.note_cache
        )
        self._leaving = Leaving(
            self._backend.host, self._errands, self._store, usual, notes, self._clock, self._disks.trouble
        )
        self._tidy = Tidy(self._queue, self.site, self._book, self._waiting, self._clock)

    def _build_starter(self, said: SiteSpec, environ: Mapping[str, str], fetcher: Fetcher) -> Starter:
        host, errands, store, clock = self._backend.host, self._errands, self._store, self._clock
        downloads = Downloads(self._link, self._directory / "downloads", fetcher, errands)
        staging = Staging(downloads, host, errands, store, self._upkeep.later, clock)
        conda_root = said.node_option(self._node, "conda_root")
        place = place_of(environ, said.env, conda_root, self._limit, far=host.copies)
        return Starter(
            self.site, self._backend, self._stager, self._slots, self._pace, self._book, self._fail, self._waiting,
            staging, downloads, Pythons(self._link, host, errands, store, place, clock), self._disks, self._permits,
            clock,
        )  # fmt: skip

    def _build_talk(self, who: Identity, total: Capacity) -> Talk:
        listener = Listener(owned=self._own, answered=self._hear, asking=self._leaving.questions)
        distant = self._backend if isinstance(self._backend, Distant) else None
        return Talk(
            self._link, self._errands, who.introduction(self.site, total), self._book, self._slots, self._pace,
            listener, self._clock, self._queue, distant, self._disks,
        )  # fmt: skip

    def _bring_back(self, own_node: str | None) -> None:
        """The parts by which outputs come to the yard: at the end, and while an attempt runs."""
        host, current = self._backend.host, self._directory / "current"
        self._finisher = Finisher(
            self._link, host, self._errands, self._stager, self._book, own_node, self._talk.trouble, self._clock
        )
        self._current = Current(self._link, host, self._errands, self._book, self._finisher.place, current, self._clock)

    def _see_to_checkpoints(self, said: SiteSpec, total: Capacity) -> None:
        host, usual = self._backend.host, said.node_option(self._node, "checkpoint_every")
        self._checkpoints = Checkpoints(
            self._link, host, self._errands, self._book, self._stager, usual, shares_directory(said, total),
            self._directory / "current", self._talk.trouble, self._clock,
        )  # fmt: skip
        self._expiry = Expiry(host, self._errands, self._store, self._talk.expired_checkpoints, self._clock)

    @property
    def stale(self) -> bool:
        """A newer incarnation has taken over: this one must not do anything any more."""
        return self._talk.stale

    def wake(self) -> None:
        """There may be work or a stop order. From any thread."""
        if self._talk.hear_news():
            self._wake.ring()

    def run_forever(self, stop: threading.Event) -> None:
        """Tick until `stop` is set or a newer incarnation takes over."""
        threading.Thread(target=self._ring_after, args=(stop,), name="agent-stop", daemon=True).start()
        while not stop.is_set():
            try:
                self.tick()
            except Exception:
                log.exception("the agent of site %s met an error that it does not know; it goes on", self.site)
                self._wake.sleep(AFTER_CRASH_S)
            if self.stale:
                return
            self._wake.sleep(self.next_due() - self._clock(), self._wake_fds())

    def tick(self) -> None:
        """One full pass: notices, evidence, next starts, relay, reports, sync, claims, stage, start."""
        for part in (self._see, self._say, self._stage, self._start):
            self._errands.collect()
            if self.stale:
                return
            part()

    def _see(self) -> None:
        """What became of the attempts; whose slots are free now goes to the next at once."""
        self._seen = self._watch.look(self._watched(), self._notices(), with_bytes=self._may_relay())
        absent = [attempt for attempt in self._book.in_phase(Phase.STARTED) if self._act_on(attempt)]
        self._starter.submit_again(absent)
        self._starter.start()

    def _say(self) -> None:
        if self._talk.incarnation is not None:
            self._relay.relay(self._watched(), self._seen, self._talk.append, self._relay_failed)
            self._leaving.tell(self._finisher.advance())
            self._current.advance()
            self._checkpoints.advance()
        self._talk.speak()

    def _stage(self) -> None:
        self._permits.advance()
        self._stops.press()
        self._starter.stage()

    def _start(self) -> None:
        self._starter.start()
        self._tidy.advance()
        if self._talk.incarnation is not None:  # only then it is known which attempts are ours
            self._leaving.advance()
            self._expiry.advance()
            self._upkeep.advance()

    def next_due(self, *, following: bool = True) -> float:
        """When the next tick has something to do, as far as that is known now. Without `following`, it is nothing to do
        that what runs may have said more by then."""
        watched = self._watched()
        if not following:
            watched = [attempt for attempt in watched if attempt.phase is Phase.OVER or attempt.has_more]
        due = min(
            self._watch.next_look(watched),
            self._talk.due_at(),
            self._stops.next_due(),
            self._starter.next_due(),
            self._tidy.next_due(),
        )
        parts = (self._finisher, self._current, self._checkpoints, self._leaving, self._expiry, self._upkeep)
        return due if self._talk.incarnation is None else min(due, *(part.next_due() for part in parts))

    def close(self) -> None:
        """Let go of everything. What runs goes on."""
        if not self._lent:
            self._link.close()
        self._errands.close()
        self._backend.close()
        self._wake.close()

    def _ring_after(self, stop: threading.Event) -> None:
        stop.wait()
        self._wake.ring()

    # --- what the backend and the directories say ---------------------------------------------------------------

    def _watched(self) -> list[Attempt]:
        return self._book.in_phase(Phase.STARTED, Phase.OVER)

    def _notices(self) -> set[str]:
        return self._backend.notices() if isinstance(self._backend, Notifier) else set()

    def _wake_fds(self) -> list[int]:
        return self._backend.wake_fds() if isinstance(self._backend, Notifier) else []

    def _act_on(self, attempt: Attempt) -> bool:
        """True when it is to be submitted again."""
        now = self._clock()
        verdict = watch.verdict_on(attempt, now)
        if verdict is Verdict.OVER and self._waits_for_word(attempt, now):
            return False
        if verdict is Verdict.OVER:
            self._end(attempt, attempt.sighting.text or "nothing of it is left, and it left no record")
        elif verdict is Verdict.NOT_STARTED:
            return attempt.stop_reason is None
        elif verdict is Verdict.DOUBTFUL and watch.is_silent(attempt, now) and self._may_give_up(attempt):
            self._give_up(attempt)
        return False

    def _waits_for_word(self, attempt: Attempt, now: float) -> bool:
        """A runner that was told to stop does not know by whom. Where there is a queue, its scheduler does, soon."""
        unheard = attempt.sighting.presence is not Presence.GONE and now < attempt.status_at + WORD_S
        return attempt.wants_word and unheard and isinstance(self._backend, Queueing)

    def _may_give_up(self, attempt: Attempt) -> bool:
        """Silence on another machine proves nothing, and a run that is given up may be tried again: so only a run that
        is to end anyway. Where there is a queue, its scheduler has the last word."""
        if isinstance(self._backend, Queueing):
            return False
        return attempt.sighting.node in (None, self._node) or attempt.stop_reason is not None

    def _give_up(self, attempt: Attempt) -> None:
        """In doubt for too long. If its runner ever wakes up, it finds the wish to stop before anything else."""
        self._stops.order(attempt.key, attempt.stop_reason or "lost")
        self._stops.press()
        self._end(attempt, attempt.sighting.text or "its runner fell silent")

    def _end(self, attempt: Attempt, gone: str) -> None:
        """Nothing of it runs any more: its slots are free from this moment."""
        now = self._clock()
        attempt.phase, attempt.over_at, attempt.look_at = Phase.OVER, now, now
        attempt.gone = gone
        self._slots.release(attempt.key)
        if attempt.submits and attempt.record is not None:
            self._pace.ended(now - attempt.submitted_at)
        if attempt.superseded:
            self._drop(attempt.key)

    def _drop(self, key: AttemptKey) -> None:
        """Nobody asks for it any more, nor for what was staged for it."""
        attempt = self._book.get(key)
        self._book.drop(key)
        if attempt is not None and is_staged(attempt):
            self._upkeep.soon()

    def _fail(self, attempt: Attempt, ending: str, message: str) -> None:
        """It never began, and never will."""
        log.warning("attempt %s cannot be started: %s", attempt.key, message)
        if ending == "disk":
            self._talk.take_nothing_for(DISK_PAUSE_S)
        attempt.end_without_runner(ending, message)
        self._end(attempt, message)

    # --- what the yard says -------------------------------------------------------------------------------------

    def _hear(self, response: SyncResponse) -> None:
        self._leaving.settled(response.settled, response.given_up)
        for key in response.settled:
            self._drop(key)
            self._tidy.later()
            self._expiry.settled()
        self._starter.receive(response.claims)
        self._tidy.hear(response.claims)
        self._stops.take(response.stops)
        self._current.take(response.wanted)
        self._checkpoints.take(response.wanted)

    def _own(self, claims: list[Claim]) -> None:
        """After a hello: exactly these are ours. Others were settled while we could not hear it, or given up."""
        owned = {claim.key for claim in claims}
        self._leaving.owned(owned)
        for attempt in self._book:
            if attempt.key not in owned:
                self._stops.order(attempt.key, SUPERSEDED)
        for claim in claims:
            known = self._book.get(claim.key)
            if known is not None:
                known.told_running = claim.state is AttemptState.RUNNING
                if known.phase < Phase.OVER:
                    known.bring_again()  # what it was to show since an answer was lost
        self._finisher.owned()
        self._adopt([claim for claim in claims if claim.key not in self._book])
        self._tidy.hear(claims)

    def _adopt(self, claims: list[Claim]) -> None:
        """Take up what an earlier incarnation had, by the evidence in its directory.

        It holds its slots until it is seen to be over; one that never began waits for its turn again.
        """
        if not claims:
            return
        try:
            adopted = self._stager.recall(claims)
            self._watch.scan(adopted, with_bytes=False)
        except Unreachable as error:  # without evidence nothing can be said of them: the yard will name them again
            log.warning("attempts cannot be taken up again yet: %s", error)
            self._talk.begin_again(SITE_PAUSE_S)
            return
        self._watch.poll_soon()
        for attempt in adopted:
            self._book.add(attempt)
            attempt.told_running = attempt.claim.state is AttemptState.RUNNING
            if attempt.made_started or attempt.told_running:
                log.info("attempt %s is taken up again", attempt.key)
                attempt.expect_something_held()
                attempt.phase, attempt.submitted_at, attempt.look_at = Phase.STARTED, self._clock(), self._clock()
                attempt.grant = self._slots.occupy(attempt.key, attempt.claim.resources, attempt.prefer_gpus)
                if self._queue is not None and attempt.prevented:
                    # Who did that may have been gone before the scheduler was told.
                    self._stops.order(attempt.key, attempt.prevented)
            else:
                attempt.expect_nothing_held()

    # --- bytes --------------------------------------------------------------------------------------------------

    def _may_relay(self) -> bool:
        return self._talk.incarnation is not None and self._relay.ready

    def _relay_failed(self, error: Exception) -> None:
        if isinstance(error, errors.YardUnreachable):
            self._talk.trouble(error)
        else:
            log.warning("the yard does not take what runs write: %s", error)
        if isinstance(error, errors.DiskFull):
            hold_up(self._book.in_phase(Phase.OVER))
