"""What is left of batches whose attempts are all settled is cleared away: now and then, and once after each start."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runyard.agent.attempts import Book
from runyard.agent.errands import Errands
from runyard.agent.watch import LANE
from runyard.backends.base import Queueing
from runyard.model.wire import Claim

EVERY_S = 60.0  # a native job takes a moment to leave the queue after its run has ended


class Tidy:
    """An earlier incarnation may have died before it came to this. What it left is known by the yard's part of the
    batches' names, which this agent learns from the first claim, and by the name of the site."""

    def __init__(
        self, queue: Queueing | None, site: str, book: Book, errands: Errands, clock: Callable[[], float]
    ) -> None:
        self._queue, self._site, self._book, self._errands, self._clock = queue, site, book, errands, clock
        self._example = ""  # the name of a batch of this yard
        self._due_at = float("inf")

    def hear(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            if not self._example:
                self._due_at = self._clock()
            self._example = claim.batch

    def later(self) -> None:
        """Something was settled."""
        self._due_at = min(self._due_at, self._clock() + EVERY_S)

    def next_due(self) -> float:
        return float("inf") if self._queue is None else self._due_at

    def advance(self) -> None:
        queue = self._queue
        if queue is None or self._clock() < self._due_at:
            return
        self._due_at = float("inf")
        kept = {attempt.claim.batch for attempt in self._book}

        def done(cleared: bool | None, error: Exception | None) -> None:
            if error is not None:
                raise error
            if not cleared:
                self.later()

        self._errands.send(LANE, lambda: queue.clear(self._example, self._site, kept), done)
