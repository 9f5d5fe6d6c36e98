"""Stop orders: carried out again and again until nothing of the attempt is left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from runyard import errors
from runyard.agent.attempts import SUPERSEDED, Attempt, Book, Phase
from runyard.backends import base
from runyard.model import spec
from runyard.model.wire import AttemptKey, StopOrder

AGAIN_S = 1.0

log = logging.getLogger(__name__)


class Stops:
    def __init__(
        self, backend: base.Backend, book: Book, poll_soon: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._backend, self._book, self._poll_soon, self._clock = backend, book, poll_soon, clock

    def take(self, orders: Iterable[StopOrder]) -> None:
        for order in orders:
            self.order(order.key, order.reason)

    def order(self, key: AttemptKey, reason: str) -> None:
        attempt = self._book.get(key)
        if attempt is None or attempt.superseded:
            return
        if reason == SUPERSEDED and attempt.phase >= Phase.OVER:
            self._book.drop(key)
        elif attempt.phase < Phase.OVER and (attempt.stop_reason is None or reason == SUPERSEDED):
            log.info("attempt %s is to end: %s", key, reason)
            attempt.stop_reason, attempt.stopped_at, attempt.asked_at = reason, self._clock(), float("-inf")

    def press(self) -> None:
        """Ask the backend for all whose time has come. One that has not begun is watched from now on like any other."""
        now = self._clock()
        due = [attempt for attempt in self._wanted() if now >= attempt.asked_at + AGAIN_S]
        if not due:
            return
        self._backend.cancel([_stop(attempt, now) for attempt in due])
        self._poll_soon()
        for attempt in due:
            attempt.asked_at = now
            if attempt.phase < Phase.STARTED:
                attempt.phase, attempt.submitted_at = Phase.STARTED, now
            attempt.look_at = now

    def next_due(self) -> float:
        return min((attempt.asked_at + AGAIN_S for attempt in self._wanted()), default=float("inf"))

    def _wanted(self) -> list[Attempt]:
        return [attempt for attempt in self._book if attempt.stop_reason is not None and attempt.phase < Phase.OVER]


def _stop(attempt: Attempt, now: float) -> base.Stop:
    reason = str(attempt.stop_reason)
    return base.Stop(job=attempt.job, reason=reason, grace=_grace(attempt), waited=now - attempt.stopped_at)


def _grace(attempt: Attempt) -> float:
    try:
        return spec.Stop.parse(attempt.claim.spec.get("stop", {})).grace
    except errors.InvalidInput:  # a newer yard's words
        return spec.Stop().grace
