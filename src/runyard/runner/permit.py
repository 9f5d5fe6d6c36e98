"""Until when a run may live, if it is started elsewhere after its agent falls silent.

The yard counts from the agent's last message, and so does the permit: its end is a time of this machine's own clock. So
it does not matter how long a renewal took to arrive, or when the runner reads it.
"""

import time
from typing import Any, Dict

from . import kernel

Json = Dict[str, Any]


def document(until: float) -> Json:
    """For control.json, of a moment that `kernel.uptime` will come to. The same by the wall clock is for machines whose
    other clock stands still with them: one that was paused is set right when it goes on."""
    return {"until": until, "wall": time.time() + until - kernel.uptime(), "boot_id": kernel.boot_id()}


def is_over(control: Any) -> bool:
    """Whether there was one, and it has expired."""
    given = Permit(0)
    given.take(control)
    return isinstance(control, dict) and "permit" in control and given.left() <= 0


class Permit:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = self._wall = float("-inf")

    def take(self, control: Any) -> None:
        """What control.json says of it, unless that was meant for another machine, or for this one before a restart."""
        given = control.get("permit") if isinstance(control, dict) else None
        try:
            if given is not None and given["boot_id"] == kernel.boot_id():
                self._until, self._wall = float(given["until"]), float(given["wall"])
        except (TypeError, KeyError, ValueError):
            pass

    def left(self) -> float:
        """Seconds; negative if it expired that long ago."""
        return min(self._until - kernel.uptime(), self._wall - time.time())

    def explain(self) -> str:
        return "its permit ran out: no word from its agent for %g s" % self._seconds
