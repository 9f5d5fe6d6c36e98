"""Things to do later, by name, on the monotonic clock."""

import time
from typing import Callable, Dict, Tuple

Action = Callable[[], None]


class Timers:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: Dict[str, Tuple[float, Action]] = {}

    def set(self, name: str, delay: float, action: Action) -> None:
        """One action per name: a later call replaces an earlier one."""
        self._due[name] = (self._clock() + delay, action)

    def set_sooner(self, name: str, delay: float, action: Action) -> None:
        """Keeps what is set when that is due earlier."""
        if name not in self._due or self._clock() + delay < self._due[name][0]:
            self.set(name, delay, action)

    def cancel(self, name: str) -> None:
        self._due.pop(name, None)

    def timeout(self) -> float:
        """Seconds until the next action; 0 when one is due."""
        return max(0.0, min(due for due, _ in self._due.values()) - self._clock())

    def run_due(self) -> None:
        now = self._clock()
        due = sorted((when, name) for name, (when, _) in self._due.items() if when <= now)
        for _, name in due:
            if name in self._due and self._due[name][0] <= now:  # an action before it may have moved or cancelled it
                self._due.pop(name)[1]()
