"""The contract of a step of `bring.Bring`: what it stages for attempts, and how it may fail."""

from __future__ import annotations

from collections.abc import Sequence

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.bring.directory import StagingFailed
from runyard.agent.part import NEVER
from runyard.hosts.base import Unreachable

Trouble = StagingFailed | Unreachable | errors.YardUnreachable  # the last two are temporary


class Step:
    """Each attempt that is begun is finished once: at once if it needs nothing, or else in a later pass."""

    def __init__(self) -> None:
        self._finished: dict[Attempt, Trouble | None] = {}

    def begin(self, attempts: Sequence[Attempt]) -> None:
        raise NotImplementedError

    def advance(self) -> None:
        """Show progress, and poll for results."""

    def next_due(self) -> float:
        return NEVER

    def release(self, attempt: Attempt) -> None:
        """Release what was kept for it."""

    def finish(self, attempt: Attempt, trouble: Trouble | None = None) -> None:
        self._finished[attempt] = trouble

    def finished(self) -> dict[Attempt, Trouble | None]:
        """Those that finished since the last call."""
        finished, self._finished = self._finished, {}
        return finished

    @property
    def has_finished(self) -> bool:
        return bool(self._finished)
