"""An agent serves one site: it claims, stages, starts, watches, relays and reports. Each pass is one `tick`.

It is a list of parts, see `part.Part`, in the order in which a tick calls them. It may be killed between any two lines:
its state is in the attempts' directories and in the yard, and the next incarnation continues from there.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from runyard.agent.attempts import Book
from runyard.agent.bring import environment
from runyard.agent.bring.bring import Bring
from runyard.agent.bring.cache import CacheStore, SiteCache
from runyard.agent.bring.directory import Stager
from runyard.agent.bring.inputs import WebInputs
from runyard.agent.bring.python import Pythons, place_of
from runyard.agent.bring.web_files import NOTHING, WebFetcher
from runyard.agent.claims import Claims
from runyard.agent.clean import disks
from runyard.agent.clean.attempt_directories import AttemptDirectories
from runyard.agent.clean.batches import Batches
from runyard.agent.clean.cache_cleanup import CacheCleanup
from runyard.agent.clean.disks import ANY_ROOM, Disks, Room
from runyard.agent.clean.old_checkpoints import OldCheckpoints
from runyard.agent.context import Context
from runyard.agent.errands import Errands, NoErrands, ThreadedErrands
from runyard.agent.identity import Identity, durable_name, of_this_machine
from runyard.agent.link import Link
from runyard.agent.part import Part
from runyard.agent.report.checkpoints import CheckpointReports, shares_directory
from runyard.agent.report.ending import Endings
from runyard.agent.report.live_outputs import LiveOutputs
from runyard.agent.report.log import Relay
from runyard.agent.run.end import Ends
from runyard.agent.run.pace import Pace
from runyard.agent.run.permits import Permits
from runyard.agent.run.slots import Slots
from runyard.agent.run.start import Starter
from runyard.agent.run.stop import Stops
from runyard.agent.run.verdicts import Verdicts
from runyard.agent.run.watch import Watch
from runyard.agent.sync import Sync, SyncListener
from runyard.agent.waiting import Waits
from runyard.agent.wake import Wake
from runyard.backends.base import Backend, Queueing
from runyard.model import cache_limit
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.wire import Claim, SyncResponse

AFTER_CRASH_S = 1.0

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
        fetcher: WebFetcher = NOTHING,
    ) -> None:
        """`directory` is the agent's own; `root` that of the attempts, if they are on another machine; `identity` its
        name and node, if its runs do not execute here; `room` the settings of disks; `fetcher` downloads inputs. The
        caller closes a link that is `lent`."""
        # A cluster has one live agent, on any machine: of agents with the same name only the newest may report.
        self._who = identity or of_this_machine(site if total.elastic else durable_name(directory))
        self.name, self.site = self._who.name, site
        self._total, self._described, self._environ = total, described or SiteSpec(), environ
        self._lent, self._room = lent, room
        self._wake = Wake()
        errands = errands or ThreadedErrands(self._wake.ring)
        self._context = Context(
            site=site, backend=backend, link=link, errands=errands,
            backend_errands=errands if isinstance(backend, Queueing) else NoErrands(), book=Book(), directory=directory,
            runs=root or os.fspath(directory / "runs"), clock=clock,
        )  # fmt: skip
        self._build_shared()
        self._build_run()
        self._build_clean()
        self._build_bring(fetcher)
        self._sync = self._build_sync()
        self._build_report()
        self._order = self._build_order()
        self._parts = list(dict.fromkeys(self._order))
        link.on_news(site, self.wake)

    def _build_order(self) -> list[Part]:
        """The order of a tick; the yard's answers are passed on in the same order. A new part is a line
        here."""
        context = self._context
        return [
            Claims(context, self._stager, self._watch, self._relay, self._starter, self._stops, self._sync),
            self._watch,
            Verdicts(context, self._who.node, self._ends, self._stops, self._starter),
            self._starter,  # slots that have just become free are used at once
            self._relay,
            Endings(context, self._stager, self._checkpoints, self._directories, self._own_node, self._sync.trouble),
            LiveOutputs(context, self._stager),
            self._checkpoints,
            self._sync,
            self._permits,
            self._stops,
            self._waits,
            self._bring,
            self._bring,  # usually everything is in the site's cache, which has answered by now
            self._starter,
            Batches(context),
            self._directories,
            OldCheckpoints(context.host, context.errands, self._store, self._sync.expired_checkpoints, context.clock),
            self._cache_cleanup,
        ]

    # --- what is done with it -----------------------------------------------------------------------------------

    @property
    def stale(self) -> bool:
        """A newer incarnation has taken over: this one must do nothing more."""
        return self._sync.stale

    def wake(self) -> None:
        """There may be work or a stop order. From any thread."""
        if self._sync.hear_news():
            self._wake.ring()

    def run_forever(self, stop: threading.Event) -> None:
        """Tick until `stop` is set or a newer incarnation takes over."""
        threading.Thread(target=self._ring_after, args=(stop,), name="agent-stop", daemon=True).start()
        while not stop.is_set():
            try:
                self.tick()
            except Exception:
                log.exception("unexpected error in the agent of site %s; it continues", self.site)
                self._wake.sleep(AFTER_CRASH_S)
            if self.stale:
                return
            self._wake.sleep(self.next_due() - self._context.clock(), self._watch.wake_fds())

    def tick(self) -> None:
        """One full pass."""
        for part in self._order:
            self._context.errands.collect()
            if self.stale:
                return
            if self._is_active(part):
                part.advance()

    def next_due(self, *, following: bool = True) -> float:
        """When the next tick has something to do, as far as is known. `following`: also to relay new output of running
        attempts."""
        watch = self._watch.next_due() if following else self._watch.next_due_of_ended()
        others = (part for part in self._parts if part is not self._watch and self._is_active(part))
        return min(watch, *(part.next_due() for part in others))

    def close(self) -> None:
        """Release all resources. Running attempts continue."""
        if not self._lent:
            self._context.link.close()
        for part in self._parts:
            part.close()
        self._context.errands.close()
        self._context.backend.close()
        self._wake.close()

    def _is_active(self, part: Part) -> bool:
        return self._sync.incarnation is not None or not part.needs_yard

    def _ring_after(self, stop: threading.Event) -> None:
        stop.wait()
        self._wake.ring()

    # --- what the yard says -------------------------------------------------------------------------------------

    def _heard(self, answer: SyncResponse) -> None:
        for part in self._parts:
            part.heard(answer)
        for key in answer.settled:
            self._context.book.drop(key)

    def _owned(self, claims: list[Claim]) -> None:
        for part in self._parts:
            part.owned(claims)

    # --- how its parts are made ---------------------------------------------------------------------------------

    def _build_shared(self) -> None:
        """What several parts use."""
        context, base = self._context, environment.inherited(self._environ)
        self._own_node = None if self._total.elastic else self._who.node
        self._slots, self._pace = Slots(self._total), Pace()
        self._stager = Stager(
            context.host, context.runs, self._total, base, self._described, self._room.scratch, self._own_node,
            context.backend.signals,
        )  # fmt: skip
        self._disks = Disks(context.host, [context.runs], self._room.reserve, context.errands, context.clock)
        if not self._total.elastic:  # the disks of a cluster's compute nodes are known only there
            self._disks.watch_scratch(disks.scratch_base(self._room, {} if context.host.copies else base))
        self._store = CacheStore(context.runs, self.name, context.book, lambda: self._sync.incarnation)
        self._limit = cache_limit.parse(self._option("cache_limit"))

    def _build_run(self) -> None:
        context = self._context
        self._watch = Watch(
            context.backend, context.runs, context.backend_errands, context.book, context.clock, self._may_relay
        )
        self._ends = Ends(context, self._slots, self._pace, self._watch)
        self._waits = Waits(context, self._disks, self._ends)
        self._permits = Permits(context.backend, context.book, lambda: self._sync.heard_at, context.clock)
        self._starter = Starter(
            context, directories=self._stager, slots=self._slots, pace=self._pace, permits=self._permits,
            waits=self._waits, ends=self._ends, watch=self._watch,
        )  # fmt: skip
        self._stops = Stops(context, self._watch, self._starter)

    def _build_clean(self) -> None:
        context, notes = self._context, self._context.directory / "leaving.jsonl"
        self._directories = AttemptDirectories(
            context.host, context.errands, self._store, self._option("keep"), notes, context.clock, self._disks.trouble
        )
        self._cache_cleanup = CacheCleanup(context, self._store, self._limit, self._disks.note_cache)

    def _build_bring(self, fetcher: WebFetcher) -> None:
        context, waits = self._context, self._waits
        conda_root, is_far = self._option("conda_root"), context.host.copies
        place = place_of(self._environ, self._described.env, conda_root, self._limit, far=is_far)
        inputs = WebInputs(context.link, context.directory / "downloads", fetcher, context.errands, waits)
        cache = SiteCache(context, inputs, self._store, waits, self._cache_cleanup.added)
        steps = [inputs, cache, Pythons(context, self._store, place, waits)]
        self._bring = Bring(context, self._stager, steps, self._slots, waits, self._ends)

    def _build_sync(self) -> Sync:
        context, ends = self._context, self._ends
        listener = SyncListener(owned=self._owned, answered=self._heard, asking=self._directories.questions)
        return Sync(
            context.link, context.errands, self._who.introduction(self.site, self._total), context.book, self._slots,
            self._pace, listener, context.clock, context.queue, context.distant, self._disks,
            lambda: ends.disk_full_until,
        )  # fmt: skip

    def _build_report(self) -> None:
        context, sync = self._context, self._sync
        self._relay = Relay(context.errands, context.book, self._watch, sync, context.clock)
        is_shared = shares_directory(self._described, self._total)
        self._checkpoints = CheckpointReports(
            context, self._stager, self._option("checkpoint_every"), is_shared, sync.trouble
        )

    def _option(self, name: str) -> str:
        """An option of the site, or of its node."""
        return self._described.node_option(self._who.node, name)

    def _may_relay(self) -> bool:
        return self._sync.incarnation is not None and self._relay.ready
