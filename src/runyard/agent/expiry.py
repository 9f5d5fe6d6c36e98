"""Checkpoints that nobody needs any more go from the site. Only the yard knows which: a run may wait to go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from runyard import errors
from runyard.agent.errands import Errands
from runyard.agent.staging import LANE, Store
from runyard.hosts.base import Host, Unreachable

SOON_S = 60.0  # after a run was settled
LOOK_S = 3600.0

log = logging.getLogger(__name__)

Ask = Callable[[Sequence[int]], dict[int, int]]  # which of these runs have expired, with their newest attempts


class Expiry:
    """The site itself remembers when it was last looked at: a process that lives for a minute need not."""

    def __init__(self, host: Host, errands: Errands, store: Store, ask: Ask, clock: Callable[[], float]) -> None:
        self._host, self._errands, self._store, self._ask, self._clock = host, errands, store, ask, clock
        self._due_at = clock() + SOON_S

    def settled(self) -> None:
        self._due_at = min(self._due_at, self._clock() + SOON_S)

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, as everything that removes something does."""
        if self._clock() < self._due_at:
            return
        self._due_at = self._clock() + LOOK_S
        cache, runs = self._store.cache(), self._store.runs

        def work() -> None:
            if there := self._host.saved(cache, runs):
                self._host.forget(runs, self._ask(there))

        def done(_: None, error: Exception | None) -> None:
            if isinstance(error, errors.RunyardError | Unreachable):
                log.warning("checkpoints that may have expired stay for now: %s", error)
            elif error is not None:
                log.error("checkpoints that have expired cannot be removed: %r", error)

        self._errands.send(LANE, work, done)
