"""How many attempts to claim beyond the free slots, so that short runs follow each other without a pause."""

from __future__ import annotations

import math

SHORT_S = 1.0  # runs of this length and longer are worth a round trip each
AHEAD_S = 0.5  # hold about this much work ready
MOST_AHEAD = 64
WEIGHT = 0.2  # of the newest run in the mean


class Pace:
    def __init__(self) -> None:
        self._mean: float | None = None
        self._most_running = 1

    def started(self, running: int) -> None:
        self._most_running = max(self._most_running, running)

    def ended(self, wall_time: float) -> None:
        self._mean = wall_time if self._mean is None else self._mean + WEIGHT * (wall_time - self._mean)

    def ahead(self) -> int:
        """How many should be ready; none if runs are long or their length is unknown."""
        if self._mean is None or self._mean >= SHORT_S:
            return 0
        return min(MOST_AHEAD, math.ceil(AHEAD_S / max(self._mean, 1e-3) * self._most_running))
