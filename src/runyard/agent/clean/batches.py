"""Delete what batches left whose attempts are all settled: regularly, and once after each start."""

from __future__ import annotations

from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.agent.run.watch import LANE
from runyard.model.wire import Claim, SyncResponse

EVERY_S = 60.0  # a native job takes a moment to leave the queue after its run has ended


class Batches(Part):
    """An earlier incarnation may have died before. Its batches are identified by the yard's part of their names, which
    this agent learns from the first claim, and by the name of the site."""

    def __init__(self, context: Context) -> None:
        self._queue, self._site, self._book = context.queue, context.site, context.book
        self._errands, self._clock = context.backend_errands, context.clock
        self._example = ""  # the name of a batch of this yard
        self._due_at = NEVER

    def heard(self, answer: SyncResponse) -> None:
        if answer.settled:
            self._later()
        self.owned(answer.claims)

    def owned(self, claims: list[Claim]) -> None:
        for claim in claims:
            if not self._example:
                self._due_at = self._clock()
            self._example = claim.batch

    def _later(self) -> None:
        self._due_at = min(self._due_at, self._clock() + EVERY_S)

    def next_due(self) -> float:
        return NEVER if self._queue is None else self._due_at

    def advance(self) -> None:
        queue = self._queue
        if queue is None or self._clock() < self._due_at:
            return
        self._due_at = NEVER
        kept = {attempt.claim.batch for attempt in self._book}

        def done(cleared: bool | None, error: Exception | None) -> None:
            if error is not None:
                raise error
            if not cleared:
                self._later()

        self._errands.send(LANE, lambda: queue.clear(self._example, self._site, kept), done)
