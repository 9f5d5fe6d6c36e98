"""From the end of an attempt to the yard's word that it is settled: files, outputs, report."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from runyard import errors
from runyard.agent import outputs, relay
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.outputs import Collected, Place
from runyard.agent.stage import Stager

LANE = "outputs"
PATIENCE_S = 10.0  # for files that are shorter than the exit record says
PAUSE_S = 2.0  # after the yard could not take an output

log = logging.getLogger(__name__)


class Finisher:
    def __init__(
        self, link: Link, errands: Errands, stager: Stager, book: Book, node: str, trouble: Callable[[Exception], None],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._link, self._errands, self._stager, self._book = link, errands, stager, book
        self._node, self._trouble, self._clock = node, trouble, clock
        self._pause_until = float("-inf")

    def advance(self) -> None:
        for attempt in self._book.in_phase(Phase.OVER):
            if attempt.outputs is None and not attempt.collecting:
                self._collect(attempt)
            if attempt.outputs is not None and self._is_relayed(attempt):
                attempt.report = attempt.end_report(self._node)
                attempt.phase = Phase.TOLD

    def next_due(self) -> float:
        """When a pause ends that somebody waits for."""
        waiting = any(a.outputs is None and not a.collecting for a in self._book.in_phase(Phase.OVER))
        return self._pause_until if waiting else float("inf")

    def _is_relayed(self, attempt: Attempt) -> bool:
        missing = relay.missing(attempt)
        if missing and attempt.drained and not attempt.relaying and self._clock() >= attempt.over_at + PATIENCE_S:
            log.warning("attempt %s: not everything could be relayed: %s", attempt.key, missing)
            return True
        return not missing

    def _collect(self, attempt: Attempt) -> None:
        place = self._place(attempt)
        if attempt.disowned or not place.globs or outputs.is_empty(place.directory):
            attempt.outputs = []
            return
        if self._clock() < self._pause_until:
            return
        attempt.collecting = True

        def done(collected: Collected | None, error: Exception | None) -> None:
            attempt.collecting = False
            if collected is not None:
                attempt.outputs = collected.files
                attempt.notes += collected.notes
            elif error is not None:
                self._collecting_failed(attempt, error)

        self._errands.send(LANE, lambda: outputs.collect(place, self._link), done)

    def _collecting_failed(self, attempt: Attempt, error: Exception) -> None:
        self._pause_until = self._clock() + PAUSE_S
        if isinstance(error, errors.YardUnreachable):
            self._trouble(error)
        elif isinstance(error, errors.DiskFull):
            log.warning("the outputs of attempt %s wait: %s", attempt.key, error)
        else:
            log.error("the outputs of attempt %s cannot be brought back: %r", attempt.key, error)
            attempt.notes.append(f"outputs left out: {error}")
            attempt.outputs = []

    def _place(self, attempt: Attempt) -> Place:
        directory = self._stager.output_directory(attempt)
        own = directory == f"{attempt.job.directory}/outputs"
        globs = attempt.claim.spec.get("outputs", ["**"])
        return Place(directory=directory, globs=globs, since_ns=None if own else _began_ns(attempt.job.directory))


def _began_ns(directory: str) -> int:
    """When the attempt began, by the clock of the file system that its outputs will be compared with."""
    for name in ("started/runner.json", "spec.json"):
        try:
            return os.stat(f"{directory}/{name}").st_mtime_ns
        except OSError:
            continue
    return 0
