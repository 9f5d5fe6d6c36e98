"""Bring what runs ask for to their site, before any slot is held: code, data and inputs, through the site's cache."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from runyard import errors
from runyard.agent.attempts import Attempt, Book
from runyard.agent.errands import Errands
from runyard.agent.link import Blobs
from runyard.agent.stage import FULL_DISK, StagingFailed
from runyard.agent.transfer import Transfer, Troubles
from runyard.backends.base import Presence, Sighting
from runyard.hosts.base import Built, Cache, Folder, Host, Plan, Unreachable
from runyard.model.wire import AttemptKey

log = logging.getLogger(__name__)

LANE = "staging"
TRANSFERS = 4  # at a time; what has everything it needs in the cache waits for none of them
TELL_S = 3.0  # between two words on how far a transfer is
STAGED = "staged; waiting for its slots"

Trouble = StagingFailed | Unreachable | errors.YardUnreachable  # the last two pass
Brought = Callable[[Attempt, Trouble | None], None]


class Store:
    """The cache of a site, beside its runs. Questions are numbered, because a late one must not undo a newer one."""

    def __init__(self, runs: str, agent: str, book: Book, incarnation: Callable[[], int | None]) -> None:
        self.runs, self.agent, self._book, self._incarnation = runs, agent, book, incarnation
        self._latest = 0
        self._numbers = itertools.count(1)

    def cache(self) -> Cache:
        self._latest = self._incarnation() or self._latest
        path = f"{self.runs.rpartition('/')[0]}/cache"
        return Cache(path=path, agent=self.agent, at=(self._latest, next(self._numbers)))

    def living(self) -> list[str]:
        """All attempts of this agent, by the names of their plans. What was staged for others before is in the way."""
        return [plan_name(attempt) for attempt in self._book]


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Attempts that something is brought for together."""

    attempts: dict[str, Attempt]  # by the names of their plans
    cache: Cache
    brought: Brought

    def plans(self) -> list[Plan]:
        return [plan_of(attempt) for attempt in self.attempts.values()]

    def only(self, names: Iterable[str]) -> Load:
        return Load(attempts={name: self.attempts[name] for name in names}, cache=self.cache, brought=self.brought)

    def end(self, name: str, trouble: Trouble | None) -> None:
        attempt = self.attempts[name]
        attempt.bringing = False
        if trouble is None and attempt.told_detail is not None:  # how far it was is not how it is
            attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=STAGED)
        self.brought(attempt, trouble)


class Staging:
    def __init__(
        self, link: Blobs, host: Host, errands: Errands, store: Store, changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """`changed` is called when something was added to the cache."""
        self._link, self._host, self._errands, self._store = link, host, errands, store
        self._changed, self._clock = changed, clock
        self._under_way: list[tuple[Load, Transfer]] = []
        self._told_at = float("-inf")

    def bring(self, attempts: Sequence[Attempt], brought: Brought) -> None:
        """Of all of these at once; `brought` is called for each: now where it asks for nothing, or else later."""
        for attempt in attempts:
            attempt.bringing = is_staged(attempt)
            attempt.bringing_since = attempt.bringing_since or self._clock()
            if not attempt.bringing:
                brought(attempt, None)
        asking = {plan_name(attempt): attempt for attempt in attempts if attempt.bringing}
        if asking:
            self._build(Load(attempts=asking, cache=self._store.cache(), brought=brought))

    def tell(self) -> None:
        """Note at the attempts how far their transfers are: the yard hears it with the next sync."""
        if self._clock() < self.next_due():
            return
        self._told_at = self._clock()
        for load, transfer in self._under_way:
            text = str(transfer.progress)
            for attempt in load.attempts.values() if text else ():
                attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=text)

    def next_due(self) -> float:
        return self._told_at + TELL_S if self._under_way else float("inf")

    def _build(self, load: Load) -> None:
        """Most often everything is in the cache: one round trip."""
        plans = load.plans()
        self._errands.send(LANE, lambda: self._host.build(load.cache, plans), functools.partial(self._built, load))

    def _built(self, load: Load, built: Built | None, error: Exception | None) -> None:
        if isinstance(error, OSError) and error.errno in FULL_DISK:  # there may be something to remove
            self._share_out(load)
            return
        if built is None:
            self._finish(load, {}, error)
            return
        troubles = {name: StagingFailed.because(problem) for name, problem in built.problems.items()}
        lacking = []
        for plan in load.plans():
            trouble = troubles.get(plan.name)
            if built.is_done(plan) or (trouble is not None and trouble.ending != "disk"):
                load.end(plan.name, trouble)
            else:
                lacking.append(plan.name)
        if lacking:
            self._share_out(load.only(lacking))

    def _share_out(self, load: Load) -> None:
        """Behind a transfer that brings the same already; the rest where the fewest wait, so that what is large does
        not keep what is small from coming."""
        waiting = Counter(transfer.lane for _, transfer in self._under_way)
        free = min(range(TRANSFERS), key=lambda lane: waiting[lane])
        lanes: dict[int, list[str]] = {}
        for plan in load.plans():
            same = (transfer.lane for _, transfer in self._under_way if plan.sources & transfer.sources)
            lanes.setdefault(next(same, free), []).append(plan.name)
        for lane, names in lanes.items():
            self._transfer(load.only(names), lane)

    def _transfer(self, load: Load, lane: int) -> None:
        cache = dataclasses.replace(load.cache, lane=lane)
        transfer = Transfer(self._link, self._host, cache, load.plans(), self._store.runs, self._store.living())
        entry = (load, transfer)
        if not self._under_way:
            self._told_at = self._clock()
        self._under_way.append(entry)

        def done(troubles: Troubles | None, error: Exception | None) -> None:
            self._under_way.remove(entry)
            self._changed()
            self._finish(load, troubles or {}, error)

        self._errands.send(f"transfer-{lane}", transfer, done)

    def _finish(self, load: Load, troubles: Troubles, error: Exception | None) -> None:
        trouble = _trouble(error)
        for name in load.attempts:
            load.end(name, troubles.get(name) or trouble)


def is_staged(attempt: Attempt) -> bool:
    """Whether anything is made for it from the cache."""
    asks = any(attempt.claim.spec.get(name) for name in ("code", "data", "inputs"))
    return asks or attempt.checkpoint is not None or attempt.afresh


def plan_name(attempt: Attempt) -> str:
    return name_of(attempt.key)


def name_of(key: AttemptKey) -> str:
    return f"{key.run}-a{key.attempt}"


def plan_of(attempt: Attempt) -> Plan:
    spec = attempt.spec
    assert spec is not None, "only what was understood is staged"
    return Plan(
        name=plan_name(attempt),
        directory=attempt.job.directory,
        code=spec.code.tree if spec.code is not None else None,
        data=tuple(Folder(to=item.to, tree=item.tree, path=item.path) for item in spec.data),
        inputs=tuple((item.digest or attempt.fetched[item.to], item.to) for item in spec.inputs),
        checkpoint=attempt.checkpoint,
        afresh=attempt.afresh,
    )


def _trouble(error: Exception | None) -> Trouble | None:
    if error is None or isinstance(error, (Unreachable, errors.YardUnreachable)):
        return error
    if isinstance(error, OSError):
        return StagingFailed.because(error)
    log.error("what runs need cannot be brought", exc_info=error)
    return StagingFailed(f"what it needs cannot be brought: {error!r}")
