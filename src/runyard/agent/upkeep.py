"""What was staged for attempts that are settled goes away, and a site's cache keeps to its limit."""

from __future__ import annotations

import logging
from collections.abc import Callable

from runyard.agent.errands import Errands
from runyard.agent.staging import LANE, Store
from runyard.hosts.base import Host, Unreachable

log = logging.getLogger(__name__)

EVERY_S = 10.0  # at least between two
FIRST_S = 30.0  # after a start: a single pass, as cron makes it every minute, does not look through the whole cache


class Upkeep:
    """Nothing is remembered for it: the site is told which attempts live, and finds what is left of others. So what an
    earlier incarnation left undone is done some time after a start. What goes of an attempt is said in
    `hosts.far.upkeep`."""

    def __init__(
        self, host: Host, errands: Errands, store: Store, limit: int, clock: Callable[[], float],
        measured: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        """`measured` is told the size and the limit."""
        self._host, self._errands, self._store, self._limit, self._clock = host, errands, store, limit, clock
        self._measured = measured
        self._due_at = clock() + FIRST_S
        self._done_at = float("-inf")

    def soon(self) -> None:
        """Something was settled."""
        self._due_at = min(self._due_at, max(self._clock(), self._done_at + EVERY_S))

    def later(self) -> None:
        """Something was brought."""
        self._due_at = min(self._due_at, self._clock() + EVERY_S)

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, so that an attempt which is not named here cannot have been staged before."""
        if self._clock() < self._due_at:
            return
        self._due_at, self._done_at = float("inf"), self._clock()
        cache, living = self._store.cache(), self._store.living()

        def done(left: int | None, error: Exception | None) -> None:
            if isinstance(error, Unreachable):
                self.later()
            elif error is not None:
                log.warning("what is left of runs cannot be removed: %s", error)
            elif left is not None:
                self._measured(left, self._limit)

        def work() -> int:
            return self._host.tidy(cache, self._limit, runs=self._store.runs, living=living)

        self._errands.send(LANE, work, done)
