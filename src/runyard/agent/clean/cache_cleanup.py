"""Delete what was staged for settled attempts, and keep a site's cache within its limit."""

from __future__ import annotations

import logging
from collections.abc import Callable

from runyard.agent.bring.cache import LANE, CacheStore
from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.hosts.base import Unreachable

log = logging.getLogger(__name__)

EVERY_S = 10.0  # at least between two
FIRST_S = 30.0  # after a start: a single pass, as from cron every minute, does not scan the whole cache


class CacheCleanup(Part):
    """It needs no state: the site gets the list of live attempts, and finds what others left. So the work of an earlier
    incarnation is completed some time after a start. What is deleted of an attempt is defined in
    `hosts.far.cache_cleanup`."""

    needs_yard = True

    def __init__(self, context: Context, store: CacheStore, limit: int, measured: Callable[[int, int], None]) -> None:
        """`measured` is called with the size and the limit."""
        self._host, self._errands, self._book = context.host, context.errands, context.book
        self._store, self._limit, self._clock, self._measured = store, limit, context.clock, measured
        self._due_at = self._clock() + FIRST_S
        self._done_at = float("-inf")

    def added(self) -> None:
        """Something was added to the cache."""
        self._due_at = min(self._due_at, self._clock() + EVERY_S)

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, so that an attempt which is not named here cannot have been staged before."""
        if any(attempt.is_staged for attempt in self._book.take_dropped()):  # not needed any more
            self._due_at = min(self._due_at, max(self._clock(), self._done_at + EVERY_S))
        if self._clock() < self._due_at:
            return
        self._due_at, self._done_at = NEVER, self._clock()
        cache, living = self._store.cache(), self._store.living()

        def done(left: int | None, error: Exception | None) -> None:
            if isinstance(error, Unreachable):
                self.added()
            elif error is not None:
                log.warning("staged files of finished runs cannot be deleted: %s", error)
            elif left is not None:
                self._measured(left, self._limit)

        def work() -> int:
            return self._host.tidy(cache, self._limit, runs=self._store.runs, living=living)

        self._errands.send(LANE, work, done)
