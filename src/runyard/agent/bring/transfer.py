"""Fill a site's cache until the files of some attempts can be staged from it."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from runyard import errors
from runyard.agent.bring.blob_source import Supply, TransferProgress
from runyard.agent.bring.directory import FULL_DISK, StagingFailed
from runyard.agent.link import BlobReader
from runyard.hosts.base import BuildPlan, BuildResult, Cache, Host, Unreachable

MOST_ROUNDS = 6  # trees, their files, and again for damaged ones

CHECKPOINT = "checkpoint"

Troubles = dict[str, StagingFailed]  # by the plan's name


class Transfer:
    """Outside the agent's loop. It may be interrupted at any time: files in the cache are not transferred again."""

    def __init__(
        self, link: BlobReader, host: Host, cache: Cache, plans: Sequence[BuildPlan], runs: str, living: Sequence[str]
    ) -> None:
        self._link, self._host, self._cache, self._runs, self._living = link, host, cache, runs, living
        self.lane, self.sources = cache.lane, {source for plan in plans for source in plan.sources}
        self._waiting = list(plans)
        self._troubles: Troubles = {}
        self._made_room = False
        self._damage: OSError | None = None
        self.progress = TransferProgress(kinds(plans))

    def __call__(self) -> Troubles:
        """The plans that failed, and why. Raises Unreachable and YardUnreachable, which are temporary."""
        for _ in range(MOST_ROUNDS):
            built = self._build()
            if not self._waiting:
                return self._troubles
            self._bring(built)
        self._fail_all(self._damage or OSError(errno.EIO, "transferred files disappear from the cache"))
        return self._troubles

    def _build(self) -> BuildResult:
        built = self._try_to_build()
        if any(error.errno in FULL_DISK for error in built.problems.values()) and self._make_room():
            built = self._try_to_build()
        for name, error in built.problems.items():
            self._troubles[name] = StagingFailed.because(error, self._cache.path)
        self._waiting = [plan for plan in self._waiting if plan.name not in built.problems and not built.is_done(plan)]
        return built

    def _try_to_build(self) -> BuildResult:
        try:
            return self._host.build(self._cache, self._waiting)
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise
            return BuildResult(problems={plan.name: error for plan in self._waiting})

    def _bring(self, built: BuildResult) -> None:
        supply = Supply(self._link, self.progress)
        try:
            self._host.deliver(self._cache, supply.parcels(one for rows in built.missing.values() for one in rows))
        except (Unreachable, errors.YardUnreachable):
            raise
        except errors.RunyardError as error:
            self._fail_all(error)
        except OSError as error:
            if error.errno == errno.EBADMSG:  # damaged in transit; the next round finds which one
                self._damage = error
            elif error.errno not in FULL_DISK or not self._make_room():
                self._fail_all(error)
        self._fail_lost(built, supply.lost)

    def _make_room(self) -> bool:
        """Deletes everything unused, including what finished runs left. The second time there is nothing left to
        delete."""
        if self._made_room:
            return False
        self._made_room = True
        self._host.tidy(self._cache, 0, runs=self._runs, living=self._living)
        return True

    def _fail_lost(self, built: BuildResult, lost: set[str]) -> None:
        for plan in self._waiting:
            for source in plan.sources:
                gone = next((one.digest for one in built.missing.get(source, ()) if one.digest in lost), None)
                if gone is not None:
                    kind = _kind(plan, source)
                    told = f"its {kind} cannot be staged: the yard has no blob {gone}"
                    self._troubles[plan.name] = StagingFailed(told, of=kind)
        self._waiting = [plan for plan in self._waiting if plan.name not in self._troubles]

    def _fail_all(self, error: OSError | errors.RunyardError) -> None:
        for plan in self._waiting:
            self._troubles[plan.name] = _failure(error, plan, self._cache)
        self._waiting = []


def kinds(plans: Sequence[BuildPlan]) -> str:
    """The kinds of files they need."""
    asked = {"code": any(p.code for p in plans), "data": any(p.data for p in plans)}
    asked["inputs"] = any(p.inputs for p in plans)
    asked[CHECKPOINT] = any(p.checkpoint for p in plans)
    return " and ".join(kind for kind, is_asked in asked.items() if is_asked)


def _kind(plan: BuildPlan, source: str) -> str:
    if source == plan.code:
        return "code"
    if source == plan.checkpoint:
        return CHECKPOINT
    return "data" if any(folder.tree == source for folder in plan.data) else "inputs"


def _failure(error: OSError | errors.RunyardError, plan: BuildPlan, cache: Cache) -> StagingFailed:
    if isinstance(error, OSError):
        return StagingFailed.because(error, cache.path)
    return StagingFailed(f"its {kinds([plan])} cannot be staged: {error.message}")
