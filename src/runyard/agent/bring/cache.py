"""Stage code, data and inputs through the site's cache, before any slot is held."""

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
from runyard.agent.bring.directory import FULL_DISK, StagingFailed
from runyard.agent.bring.step import Step, Trouble
from runyard.agent.bring.transfer import Transfer, Troubles
from runyard.agent.context import Context
from runyard.agent.link import BlobReader
from runyard.agent.part import NEVER
from runyard.agent.waiting import Waits
from runyard.hosts.base import BuildPlan, BuildResult, Cache, DataFolder, Unreachable
from runyard.model.wire import AttemptKey

log = logging.getLogger(__name__)

LANE = "staging"
TRANSFERS = 4  # at a time; attempts whose files are in the cache do not wait for them
TELL_S = 3.0  # between two reports of progress


class CacheStore:
    """The cache of a site, beside its runs. Requests are numbered, because a late one must not undo a newer one."""

    def __init__(self, runs: str, agent: str, book: Book, incarnation: Callable[[], int | None]) -> None:
        self.runs, self.agent, self._book, self._incarnation = runs, agent, book, incarnation
        self._latest = 0
        self._numbers = itertools.count(1)

    def cache(self) -> Cache:
        self._latest = self._incarnation() or self._latest
        path = f"{self.runs.rpartition('/')[0]}/cache"
        return Cache(path=path, agent=self.agent, at=(self._latest, next(self._numbers)))

    def living(self) -> list[str]:
        """All attempts of this agent, by the names of their plans; files staged for others may be deleted."""
        return [plan_name(attempt) for attempt in self._book]


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Attempts that share a transfer."""

    attempts: dict[str, Attempt]  # by the names of their plans
    cache: Cache

    def plans(self) -> list[BuildPlan]:
        return [plan_of(attempt) for attempt in self.attempts.values()]

    def only(self, names: Iterable[str]) -> Load:
        return Load(attempts={name: self.attempts[name] for name in names}, cache=self.cache)


class SiteCache(Step):
    """Code, data, inputs and checkpoints: staged for each attempt from the site's cache, which is filled on demand."""

    def __init__(
        self, context: Context, blobs: BlobReader, store: CacheStore, waits: Waits, changed: Callable[[], None]
    ) -> None:
        """`blobs`: the source of the cache. `changed` is called when something was added to it."""
        super().__init__()
        self._link, self._host, self._errands, self._clock = blobs, context.host, context.errands, context.clock
        self._store, self._waits, self._changed = store, waits, changed
        self._under_way: list[tuple[Load, Transfer]] = []
        self._told_at = float("-inf")

    def begin(self, attempts: Sequence[Attempt]) -> None:
        asking = {plan_name(attempt): attempt for attempt in attempts if attempt.is_staged}
        for attempt in attempts:
            if not attempt.is_staged:
                self.finish(attempt)
        if asking:
            self._build(Load(attempts=asking, cache=self._store.cache()))

    def advance(self) -> None:
        """Show the progress of the transfers."""
        if self._clock() < self.next_due():
            return
        self._told_at = self._clock()
        for load, transfer in self._under_way:
            if text := str(transfer.progress):
                self._waits.show(load.attempts.values(), text)

    def next_due(self) -> float:
        return self._told_at + TELL_S if self._under_way else NEVER

    def _build(self, load: Load) -> None:
        """Usually everything is in the cache: one round trip."""
        plans = load.plans()
        self._errands.send(LANE, lambda: self._host.build(load.cache, plans), functools.partial(self._built, load))

    def _built(self, load: Load, built: BuildResult | None, error: Exception | None) -> None:
        if isinstance(error, OSError) and error.errno in FULL_DISK:  # there may be something to delete
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
                self._end(load.attempts[plan.name], trouble)
            else:
                lacking.append(plan.name)
        if lacking:
            self._share_out(load.only(lacking))

    def _share_out(self, load: Load) -> None:
        """Queue behind a transfer of the same files; otherwise in the shortest queue, so that large transfers do not
        block small ones."""
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
        for name, attempt in load.attempts.items():
            self._end(attempt, troubles.get(name) or trouble)

    def _end(self, attempt: Attempt, trouble: Trouble | None) -> None:
        if trouble is None:
            self._waits.show_staged(attempt)
        self.finish(attempt, trouble)


def plan_name(attempt: Attempt) -> str:
    return name_of(attempt.key)


def name_of(key: AttemptKey) -> str:
    return f"{key.run}-a{key.attempt}"


def plan_of(attempt: Attempt) -> BuildPlan:
    spec = attempt.spec
    return BuildPlan(
        name=plan_name(attempt),
        directory=attempt.job.directory,
        code=spec.code.tree if spec.code is not None else None,
        data=tuple(DataFolder(to=item.to, tree=item.tree, path=item.path) for item in spec.data),
        inputs=tuple((item.digest or attempt.fetched[item.to], item.to) for item in spec.inputs),
        checkpoint=attempt.resume_from,
        afresh=attempt.starts_afresh,
    )


def _trouble(error: Exception | None) -> Trouble | None:
    if error is None or isinstance(error, (Unreachable, errors.YardUnreachable)):
        return error
    if isinstance(error, OSError):
        return StagingFailed.because(error)
    log.error("files of runs cannot be staged", exc_info=error)
    return StagingFailed(f"its files cannot be staged: {error!r}")
