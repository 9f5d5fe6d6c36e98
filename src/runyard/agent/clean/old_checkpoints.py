"""Delete expired checkpoints at the site. Only the yard knows which have expired: a run may wait to resume."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from runyard import errors
from runyard.agent.bring.cache import LANE, CacheStore
from runyard.agent.errands import Errands
from runyard.agent.part import Part
from runyard.hosts.base import Host, Unreachable
from runyard.model.wire import SyncResponse

SOON_S = 60.0  # after a run was settled
LOOK_S = 3600.0

log = logging.getLogger(__name__)

Ask = Callable[[Sequence[int]], dict[int, int]]  # which of these runs have expired, with their newest attempts


class OldCheckpoints(Part):
    """The time of the last check is stored at the site, for processes that live for a minute."""

    needs_yard = True

    def __init__(self, host: Host, errands: Errands, store: CacheStore, ask: Ask, clock: Callable[[], float]) -> None:
        self._host, self._errands, self._store, self._ask, self._clock = host, errands, store, ask, clock
        self._due_at = clock() + SOON_S

    def heard(self, answer: SyncResponse) -> None:
        if answer.settled:
            self._due_at = min(self._due_at, self._clock() + SOON_S)

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, like every deletion."""
        if self._clock() < self._due_at:
            return
        self._due_at = self._clock() + LOOK_S
        cache, runs = self._store.cache(), self._store.runs

        def work() -> None:
            if there := self._host.saved(cache, runs):
                self._host.forget(runs, self._ask(there))

        def done(_: None, error: Exception | None) -> None:
            if isinstance(error, errors.RunyardError | Unreachable):
                log.warning("expired checkpoints are kept for now: %s", error)
            elif error is not None:
                log.error("expired checkpoints cannot be deleted: %r", error)

        self._errands.send(LANE, work, done)
