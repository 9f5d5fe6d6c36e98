"""The loop by which the yard follows what runs report, and acts on it."""

from __future__ import annotations

from runyard.loop import Loop
from runyard.yard.sweeps import SWEEPS_CHANGED
from runyard.yard.yard import Yard

GATHER_S = 0.2
GATHER_HUNGRY_S = 0.02  # while sweeps have trials to make: slots would be idle until then


class Progress(Loop):
    again_s = 1.0
    gather_s = GATHER_S

    def __init__(self, yard: Yard) -> None:
        super().__init__("progress")
        self._metrics, self._sweeps = yard.metrics, yard.sweeps
        yard.metrics.on_news(self.ring)
        yard.hints.listen("run:", self._ring_for_sweeps)
        yard.hints.listen(SWEEPS_CHANGED, self.ring)

    def tick(self) -> bool:
        more = self._sweeps.note_ends()  # first: nobody is stopped who has come as far as those that are through
        more = self._metrics.tick() or more
        more = self._sweeps.tick() or more
        self.gather_s = GATHER_HUNGRY_S if self._sweeps.is_hungry else GATHER_S
        return more

    def _ring_for_sweeps(self) -> None:
        """Ends of runs matter at once only where something is made of them."""
        if self._sweeps.is_hungry:
            self.ring()
