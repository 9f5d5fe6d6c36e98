"""The clock that leases are measured by, where the machines of several servers have clocks of their own."""

from __future__ import annotations

import time


class SharedClock:
    """PostgreSQL's, as the last transaction told it, carried on by a clock that nobody sets. It is late by as long as
    that answer was under way, so servers agree to within milliseconds."""

    def __init__(self) -> None:
        self._origin = time.time() - time.monotonic()  # until the first transaction

    def set(self, now: float) -> None:
        self._origin = now - time.monotonic()

    def __call__(self) -> float:
        return self._origin + time.monotonic()
