"""A background part of a yard that works in passes: soon after a hint, and regularly without one."""

from __future__ import annotations

import abc
import threading
import time

LOOK_S = 2.0  # between two checks whether the pass has ended


class Loop(abc.ABC):
    """Each has its own thread, so that a slow one delays no other."""

    again_s = 2.0  # between two passes without a hint
    gather_s = 0.0  # delay after a hint, to handle several together
    apart_s = 0.0  # minimum time between the starts of two passes
    by_one = True  # with several servers, one of them at a time does it

    def __init__(self, name: str) -> None:
        self.__name__ = self.name = name
        self._wanted = threading.Event()

    @abc.abstractmethod
    def tick(self) -> bool:
        """One pass; True if there may be more to do at once."""

    def ring(self) -> None:
        """There may be something to do. From any thread; never blocks."""
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
        """Until a hint. All earlier hints are for the next pass."""
        self._wanted.wait(seconds)
        self._wanted.clear()

    def _ring_after(self, stop: threading.Event, left: threading.Event) -> None:
        """Wake the loop when it is to stop, unless the pass has ended (`left`)."""
        while not stop.wait(LOOK_S) and not left.is_set():
            pass
        self.ring()
