"""Blocking work outside the agent's loop: requests to the yard, uploads, schedulers.

A lane does its errands one after the other. `collect` passes results on in the loop's own thread, so that only the loop
changes an attempt.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[[], Any]
Done = Callable[[Any, Exception | None], None]  # the result, or the error


class Errands(Protocol):
    def send(self, lane: str, work: Work, done: Done) -> None: ...

    def collect(self) -> None:
        """Call `done` for what has finished."""
        ...

    def close(self) -> None: ...


class NoErrands:
    """Does everything, including the callback, before `send` returns."""

    def send(self, lane: str, work: Work, done: Done) -> None:
        _carry_out(work, done)()

    def collect(self) -> None:
        pass

    def close(self) -> None:
        pass


class InlineErrands:
    """Does everything in `send`: for a single pass, and for tests."""

    def __init__(self) -> None:
        self._finished: deque[Callable[[], None]] = deque()

    def send(self, lane: str, work: Work, done: Done) -> None:
        self._finished.append(_carry_out(work, done))

    def collect(self) -> None:
        while self._finished:
            self._finished.popleft()()

    def close(self) -> None:
        self._finished.clear()


class ThreadedErrands:
    """One daemon thread per lane, started at first use: an upload never keeps a process alive."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._finished: deque[Callable[[], None]] = deque()
        self._lanes: dict[str, queue.SimpleQueue[tuple[Work, Done] | None]] = {}
        self._closed = False

    def send(self, lane: str, work: Work, done: Done) -> None:
        if lane not in self._lanes:
            self._lanes[lane] = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(self._lanes[lane],), name=f"agent-{lane}", daemon=True).start()
        self._lanes[lane].put((work, done))

    def collect(self) -> None:
        while self._finished:
            self._finished.popleft()()

    def close(self) -> None:
        """Errands that have not begun are dropped."""
        self._closed = True
        for lane in self._lanes.values():
            lane.put(None)
        self._lanes.clear()

    def _serve(self, lane: queue.SimpleQueue[tuple[Work, Done] | None]) -> None:
        while (errand := lane.get()) is not None and not self._closed:
            self._finished.append(_carry_out(*errand))
            self._wake()


def _carry_out(work: Work, done: Done) -> Callable[[], None]:
    try:
        result = work()
    except Exception as error:
        failure = error
        return lambda: done(None, failure)
    return lambda: done(result, None)
