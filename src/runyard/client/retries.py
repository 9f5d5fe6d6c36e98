"""How long to hope for a yard that has been there and is away: it may be restarting."""

from __future__ import annotations

import time

from runyard import errors

PATIENCE = 60.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0


class Patience:
    """Call `met` after every success and `endure` after a failure, which it raises again when hope is over.

    The time counts from the first failure after a success, which may be the end of hours of listening. A yard that
    never answered gets no patience: the address is more likely wrong.
    """

    def __init__(self, seconds: float = PATIENCE) -> None:
        self._seconds = seconds
        self._was_there = False
        self._until: float | None = None
        self._pause = FIRST_PAUSE

    def met(self) -> None:
        self._was_there = True
        self._until = None
        self._pause = FIRST_PAUSE

    def endure(self, error: errors.YardUnreachable) -> None:
        now = time.monotonic()
        if isinstance(error, errors.StoreError):  # that was an answer, of a yard that waits itself
            self._was_there = True
        if self._until is None:
            self._until = now + self._seconds
        if not self._was_there or now + self._pause > self._until:
            raise error
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
