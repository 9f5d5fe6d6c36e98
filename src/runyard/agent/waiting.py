"""Why attempts are not started, and the pauses after failures: their site does not answer, or its disk is full."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.clean.disks import Disks
from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.agent.run.end import Ends
from runyard.hosts.base import Unreachable

PAUSE_S = 5.0  # after the site could not be reached
STAGED = "staged; waiting for its slots"

log = logging.getLogger(__name__)


class Waits(Part):
    def __init__(self, context: Context, disks: Disks, ends: Ends) -> None:
        self._context, self._disks, self._ends = context, disks, ends
        self._pause_until = float("-inf")

    @property
    def is_pausing(self) -> bool:
        return self._context.clock() < self._pause_until

    def next_due(self) -> float:
        """When a pause ends that attempts wait for."""
        return self._pause_until if self.is_pausing and self._not_started() else NEVER

    def show(self, attempts: Iterable[Attempt], text: str) -> None:
        """Reported to the yard with the next sync."""
        for attempt in attempts:
            attempt.waiting.text = text

    def show_staged(self, attempt: Attempt) -> None:
        """Clear the stale progress line."""
        if attempt.told_detail is not None:
            attempt.waiting.text = STAGED

    def lacks_room(self) -> bool:
        """Whether the disk was filled by others since the last check: runs need little here."""
        self._disks.look_again()
        return self.is_full()

    def is_full(self) -> bool:
        """Without free space, runs wait, with that reason."""
        waiting = self._not_started()
        trouble = self._disks.trouble() if waiting else ""
        if trouble:
            self.show(waiting, f"waiting for free disk space: {trouble}")
            self._pause_until = self._context.clock() + PAUSE_S
        return bool(trouble)

    def pause(self, error: Exception) -> None:
        """The site or the yard does not answer."""
        if self.is_pausing:  # the other attempts of this pass have the same trouble
            return
        log.warning("runs are waiting to be started: %s", error)
        for attempt in self._not_started():
            if isinstance(error, Unreachable) and self._may_return(attempt):
                self._ends.fail(attempt, "returned", str(error))
            else:
                attempt.waiting.text = str(error)
        self._pause_until = self._context.clock() + PAUSE_S

    def _may_return(self, attempt: Attempt) -> bool:
        """Attempts that were never submitted to a machine that does not answer may run on others of its site."""
        return self._context.distant is not None and attempt.fresh and not attempt.submits

    def _not_started(self) -> list[Attempt]:
        return self._context.book.in_phase(Phase.RECEIVED, Phase.READY)
