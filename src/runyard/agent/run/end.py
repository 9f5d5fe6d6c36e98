"""The end of attempts: by evidence, or because they cannot be started."""

from __future__ import annotations

import logging

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.context import Context
from runyard.agent.run.pace import Pace
from runyard.agent.run.slots import Slots
from runyard.agent.run.watch import Watch

DISK_PAUSE_S = 30.0  # no new work for so long after the disk was full

log = logging.getLogger(__name__)


class Ends:
    """What follows from the end of an attempt."""

    def __init__(self, context: Context, slots: Slots, pace: Pace, watching: Watch) -> None:
        self._context, self._slots, self._pace, self._watch = context, slots, pace, watching
        self.disk_full_until = float("-inf")  # by the agent's clock: no new work before

    def fail(self, attempt: Attempt, ending: str, message: str) -> None:
        """It was not and will not be started: it gets the record that a runner would have written."""
        log.warning("attempt %s cannot be started: %s", attempt.key, message)
        if ending == "disk":
            self.disk_full_until = self._context.clock() + DISK_PAUSE_S
        attempt.over.record = {
            "state": "ended", "ending": ending, "message": message, "exit_code": None, "signal": None,
            "tree_gone": True, "sizes": {},
        }  # fmt: skip
        self.end(attempt, message)

    def end(self, attempt: Attempt, gone: str) -> None:
        """Its processes have ended: its slots are free now."""
        now = self._context.clock()
        attempt.over.at, attempt.over.gone = now, gone
        self._context.book.move(attempt, Phase.OVER)
        self._watch.look_now(attempt)
        self._slots.release(attempt.key)
        if attempt.submits and attempt.record is not None:
            self._pace.ended(now - attempt.submitted_at)
        if attempt.superseded:
            self._context.book.drop(attempt.key)
