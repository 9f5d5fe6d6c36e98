"""A background part of a yard that works pass by pass: soon after a hint, and from time to time without one."""

from __future__ import annotations

import abc
import threading
import time

LOOK_S = 2.0  # between two looks whether anybody still waits for a stop


class Loop(abc.ABC):
    """Each has a thread of its own, so a slow one keeps nobody else waiting."""

    again_s = 2.0  # between two looks, where no hint came
    gather_s = 0.0  # what comes together is dealt with together
    apart_s = 0.0  # no two passes begin sooner after each other
    by_one = True  # where a yard has several servers, one of them at a time does it

    def __init__(self, name: str) -> None:
        self.__name__ = self.name = name
        self._wanted = threading.Event()

    @abc.abstractmethod
    def tick(self) -> bool:
        """One pass; True when there may be more to do at once."""

    def ring(self) -> None:
        """There may be something to do. From any thread; never waits."""
        self._wanted.set()

    def __call__(self, stop: threading.Event) -> None:
        left = threading.Event()
        threading.Thread(target=self._ring_after, args=(stop, left), name=f"{self.name}-stop", daemon=True).start()
        try:
            while not stop.is_set():
                began = time.monotonic()
                if not self.tick():
                    self._wait(self.again_s)
                stop.wait(max(self.gather_s, began + self.apart_s - time.monotonic()))
        finally:
            left.set()

    def _wait(self, seconds: float) -> None:
        """Until it rings. Whatever rang until now is for the next pass."""
        self._wanted.wait(seconds)
        self._wanted.clear()

    def _ring_after(self, stop: threading.Event, left: threading.Event) -> None:
        """A stop is not slept through. Nobody waits for one on behalf of a pass that failed."""
        while not stop.wait(LOOK_S) and not left.is_set():
            pass
        self.ring()
