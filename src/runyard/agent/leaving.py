"""The directories of attempts that are settled go away, as far as the yard has what is in them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.errands import Errands
from runyard.agent.staging import LANE, Store, plan_name
from runyard.hosts.base import Host
from runyard.model import keep

EVERY_S = 10.0  # many go together
LOOK_S = 3600.0  # for those that stay for a while only

log = logging.getLogger(__name__)


class Leaving:
    def __init__(self, host: Host, errands: Errands, store: Store, usual: str, clock: Callable[[], float]) -> None:
        """`usual`: what the site says, for runs that say nothing."""
        self._host, self._errands, self._store, self._usual, self._clock = host, errands, store, usual, clock
        self._waiting: dict[str, tuple[str, int | None]] = {}
        self._due_at, self._done_at = clock() + LOOK_S, float("-inf")

    def settled(self, attempt: Attempt) -> None:
        """What is not known to be in the yard stays where it is."""
        if not attempt.is_whole:
            return
        kept = self._wish(attempt).after(succeeded=attempt.succeeded)
        self._waiting[plan_name(attempt)] = (kept.what, kept.seconds)
        self._due_at = min(self._due_at, max(self._clock(), self._done_at + EVERY_S))

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, as everything that removes something does."""
        if self._clock() < self._due_at:
            return
        waiting, self._waiting = self._waiting, {}
        self._due_at, self._done_at = self._clock() + LOOK_S, self._clock()
        cache, runs = self._store.cache(), self._store.runs

        def done(_: None, error: Exception | None) -> None:
            if error is not None:
                log.warning("what is left of runs cannot be removed: %s", error)
                self._waiting = {**waiting, **self._waiting}
                self._due_at = min(self._due_at, self._clock() + 6 * EVERY_S)

        self._errands.send(LANE, lambda: self._host.leave(cache, runs, waiting), done)

    def _wish(self, attempt: Attempt) -> keep.Keep:
        try:
            return keep.parse(attempt.claim.spec.get("keep") or self._usual)
        except errors.InvalidInput:  # a newer yard's words
            return keep.Keep(keep.ALL)
