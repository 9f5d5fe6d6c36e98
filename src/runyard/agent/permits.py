"""Permits of runs that are tried again elsewhere when nobody hears of them: renewed while the yard hears of us.

A permit counts from the moment at which we said what the yard last answered. So it is never longer than the yard
thinks, and renewing it while nobody answers changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from runyard.agent.attempts import Attempt, Book, Phase
from runyard.backends.base import Backend, Permitting
from runyard.runner import kernel

SHARE = 4  # a permit is renewed after this part of it
PAUSE_S = 5.0  # after nobody could be told


class Permits:
    def __init__(self, backend: Backend, book: Book, heard_at: Callable[[], float], clock: Callable[[], float]) -> None:
        """`heard_at`: since when permits count, by `kernel.uptime`."""
        self._backend, self._book, self._clock = backend, book, clock
        self.heard_at = heard_at
        self._not_before = float("-inf")

    def may_start(self, attempt: Attempt) -> bool:
        """Not with a permit that would be over soon: then the yard does not hear of us."""
        permit = attempt.job.permit
        return permit is None or kernel.uptime() < self.heard_at() + permit / 2

    def advance(self) -> None:
        """All at once, when the first of them is due."""
        if not isinstance(self._backend, Permitting) or self._clock() < self._not_before:
            return
        heard_at = self.heard_at()
        held = [attempt for attempt in self._book.in_phase(Phase.STARTED) if _lives_by_permit(attempt)]
        if not any(heard_at >= attempt.permitted_from + (attempt.job.permit or 0) / SHARE for attempt in held):
            return
        if not self._backend.renew([attempt.job for attempt in held], heard_at):
            self._not_before = self._clock() + PAUSE_S
            return
        for attempt in held:
            attempt.permitted_from = heard_at


def _lives_by_permit(attempt: Attempt) -> bool:
    return attempt.job.permit is not None and attempt.record is None and not attempt.superseded
