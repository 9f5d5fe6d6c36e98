"""Stop requests: repeated until all processes of the attempt have ended."""

from __future__ import annotations

import logging

from runyard import errors
from runyard.agent.attempts import SUPERSEDED, Attempt, Phase
from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.agent.run.start import Starter
from runyard.agent.run.watch import Watch
from runyard.backends import base
from runyard.model import spec
from runyard.model.wire import AttemptKey, Claim, SyncResponse

AGAIN_S = 1.0

log = logging.getLogger(__name__)


class Stops(Part):
    def __init__(self, context: Context, watch: Watch, starter: Starter) -> None:
        self._book, self._backend, self._clock = context.book, context.backend, context.clock
        self._watch, self._starter = watch, starter

    def heard(self, answer: SyncResponse) -> None:
        for order in answer.stops:
            self.order(order.key, order.reason)

    def owned(self, claims: list[Claim]) -> None:
        """Other attempts were settled without our receiving it, or given up."""
        keys = {claim.key for claim in claims}
        for attempt in self._book:
            if attempt.key not in keys:
                self.order(attempt.key, SUPERSEDED)

    def order(self, key: AttemptKey, reason: str) -> None:
        attempt = self._book.get(key)
        if attempt is None or attempt.superseded:
            return
        if reason == SUPERSEDED and attempt.phase >= Phase.OVER:
            self._book.drop(key)
        elif attempt.phase < Phase.OVER and (attempt.stop_reason is None or reason == SUPERSEDED):
            log.info("attempt %s is to be stopped: %s", key, reason)
            stopping = attempt.stopping
            stopping.reason, stopping.since, stopping.asked_at = reason, self._clock(), float("-inf")

    def advance(self) -> None:
        """Request the stop of all that are due. One that was not started is watched from now on like any other."""
        now = self._clock()
        due = [attempt for attempt in self._wanted() if now >= attempt.stopping.asked_at + AGAIN_S]
        if not due:
            return
        self._backend.cancel([_stop(attempt, now) for attempt in due])
        self._watch.poll_soon()
        for attempt in due:
            attempt.stopping.asked_at = now
            if attempt.phase < Phase.STARTED:
                self._starter.leave_to_backend(attempt)
            self._watch.look_now(attempt)

    def next_due(self) -> float:
        return min((attempt.stopping.asked_at + AGAIN_S for attempt in self._wanted()), default=NEVER)

    def _wanted(self) -> list[Attempt]:
        return [attempt for attempt in self._book if attempt.stop_reason is not None and attempt.phase < Phase.OVER]


def _stop(attempt: Attempt, now: float) -> base.StopRequest:
    reason = str(attempt.stop_reason)
    return base.StopRequest(job=attempt.job, reason=reason, grace=_grace(attempt), waited=now - attempt.stopping.since)


def _grace(attempt: Attempt) -> float:
    try:
        return spec.Stop.parse(attempt.claim.spec.get("stop", {})).grace
    except errors.InvalidInput:  # written by a newer yard
        return spec.Stop().grace
