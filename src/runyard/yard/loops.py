"""Background loops of a yard: deadlines of agents, and metrics with the decisions of sweeps."""

from __future__ import annotations

import threading

from runyard.loop import Loop
from runyard.yard.sweeps import SWEEPS_CHANGED
from runyard.yard.yard import Yard

GATHER_S = 0.2
GATHER_HUNGRY_S = 0.02  # while sweeps have trials to make: slots would be idle until then


class DeadlineLoop(Loop):
    """Looks at leases and deadlines."""

    again_s = 5.0

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        super().__init__("clock")

    def __call__(self, stop: threading.Event) -> None:
        """Agents that come back together with the yard report first."""
        if not stop.wait(self.again_s):
            super().__call__(stop)

    def tick(self) -> bool:
        self._yard.tick()
        return False


class MetricsLoop(Loop):
    """Reads the metrics of runs, and makes the decisions of sweeps."""

    again_s = 1.0
    gather_s = GATHER_S

    def __init__(self, yard: Yard) -> None:
        super().__init__("progress")
        self._metrics, self._sweeps = yard.metrics, yard.sweeps
        yard.metrics.on_news(self.ring)
        yard.hints.listen("run:", self._ring_for_sweeps)
        yard.hints.listen(SWEEPS_CHANGED, self.ring)

    def tick(self) -> bool:
        more = self._sweeps.note_ends()  # first: a run that has reached the last step of ended runs is not stopped
        more = self._metrics.tick() or more
        more = self._sweeps.tick() or more
        self.gather_s = GATHER_HUNGRY_S if self._sweeps.is_hungry else GATHER_S
        return more

    def _ring_for_sweeps(self) -> None:
        """Ends of runs matter at once only if something depends on them."""
        if self._sweeps.is_hungry:
            self.ring()
