"""Sleep until something happens: a hint from another thread, a notice from the backend, or a deadline."""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
from collections.abc import Iterable

LONGEST_S = 3600.0


class Wake:
    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._rung = self._closed = False
        self._lock = threading.Lock()

    def ring(self) -> None:
        """From any thread. Several rings before the next sleep count as one; after `close` they have no effect."""
        with self._lock:
            if self._rung or self._closed:
                return
            self._rung = True
            with contextlib.suppress(BlockingIOError):  # full: it is awake anyway
                os.write(self._writer, b"!")

    def sleep(self, seconds: float, others: Iterable[int] = ()) -> None:
        """Until a ring, until one of the other descriptors is readable, or until the time is over."""
        waiting = select.poll()
        for descriptor in (self._reader, *others):
            waiting.register(descriptor, select.POLLIN)
        waiting.poll(math.ceil(max(0.0, min(seconds, LONGEST_S)) * 1000))
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        self._rung = False  # after the read: a ring in between is for the pass that follows now

    def close(self) -> None:
        with self._lock:
            self._closed = True
        os.close(self._reader)
        os.close(self._writer)
