"""Permits of runs that are retried elsewhere if the yard gets no reports: renewed while the yard answers.

A permit counts from the time at which the last answered sync was sent. So it never lasts longer than the yard
assumes, and renewing it without an answer changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.part import Part
from runyard.backends.base import Backend, Permitting
from runyard.runner import kernel

SHARE = 4  # a permit is renewed after this part of it
PAUSE_S = 5.0  # after a failed renewal


class Permits(Part):
    def __init__(self, backend: Backend, book: Book, heard_at: Callable[[], float], clock: Callable[[], float]) -> None:
        """`heard_at`: since when permits count, by `kernel.uptime`."""
        self._backend, self._book, self._clock = backend, book, clock
        self.heard_at = heard_at
        self._not_before = float("-inf")

    def may_start(self, attempt: Attempt) -> bool:
        """Not with a permit that would expire soon: then the yard does not answer."""
        permit = attempt.job.permit
        return permit is None or kernel.uptime() < self.heard_at() + permit / 2

    def begin(self, attempts: Iterable[Attempt], heard_at: float) -> None:
        """They are submitted with permits that count from `heard_at`."""
        for attempt in attempts:
            attempt.permit.since = heard_at

    def advance(self) -> None:
        """Renew all at once, when the first of them is due."""
        if not isinstance(self._backend, Permitting) or self._clock() < self._not_before:
            return
        heard_at = self.heard_at()
        held = [attempt for attempt in self._book.in_phase(Phase.STARTED) if _lives_by_permit(attempt)]
        if not any(heard_at >= attempt.permit.since + (attempt.job.permit or 0) / SHARE for attempt in held):
            return
        if not self._backend.renew([attempt.job for attempt in held], heard_at):
            self._not_before = self._clock() + PAUSE_S
            return
        self.begin(held, heard_at)


def _lives_by_permit(attempt: Attempt) -> bool:
    return attempt.job.permit is not None and attempt.record is None and not attempt.superseded
