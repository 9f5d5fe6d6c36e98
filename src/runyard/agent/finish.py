"""From the end of an attempt to the yard's word that it is settled: files, outputs, report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from runyard import errors
from runyard.agent import outputs, relay
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands, Work
from runyard.agent.link import Link
from runyard.agent.outputs import Collected, Place
from runyard.agent.stage import Stager
from runyard.hosts.base import Host, Search, Unreachable
from runyard.model import globs

LANE = "outputs"
PATIENCE_S = 10.0  # for files that are shorter than the exit record says
PAUSE_S = 2.0  # after outputs could not be brought back

log = logging.getLogger(__name__)

Found = tuple[Attempt, Place]


class Finisher:
    def __init__(
        self, link: Link, host: Host, errands: Errands, stager: Stager, book: Book, node: str | None,
        trouble: Callable[[Exception], None], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._link, self._host, self._errands, self._stager, self._book = link, host, errands, stager, book
        self._node, self._trouble, self._clock = node, trouble, clock
        self._pause_until = float("-inf")

    def advance(self) -> list[Attempt]:
        """Those whose end the yard may be told now."""
        self._collect(self._uncollected())
        over = self._book.in_phase(Phase.OVER)
        brought = [attempt for attempt in over if attempt.outputs is not None and attempt.saving.is_done]
        complete = [attempt for attempt in brought if self._is_relayed(attempt)]
        for attempt in complete:
            attempt.is_whole = _is_whole(attempt)
            attempt.report = attempt.end_report(self._node)
            attempt.phase = Phase.TOLD
        return complete

    def next_due(self) -> float:
        """When a pause ends that somebody waits for."""
        return self._pause_until if self._uncollected() else float("inf")

    def _uncollected(self) -> list[Attempt]:
        return [a for a in self._book.in_phase(Phase.OVER) if a.outputs is None and not a.collecting]

    def _is_relayed(self, attempt: Attempt) -> bool:
        missing = relay.missing(attempt)
        if missing and attempt.drained and not attempt.relaying and self._clock() >= attempt.over_at + PATIENCE_S:
            log.warning("attempt %s: not everything could be relayed: %s", attempt.key, missing)
            return True
        return not missing

    # --- outputs ------------------------------------------------------------------------------------------------

    def _collect(self, attempts: Sequence[Attempt]) -> None:
        """Look for the outputs of all of these at once; most runs leave none, and are done with this."""
        if not attempts or self._clock() < self._pause_until:
            return
        places = {attempt.key: self.place(attempt) for attempt in attempts if _wants_outputs(attempt)}
        unseen = {attempt.key: self._stager.checkpoints(attempt) for attempt in attempts if _may_have_saved(attempt)}
        try:
            filled = self._host.filled([*(place.search.directory for place in places.values()), *unseen.values()])
        except Unreachable as error:
            self._failed(attempts, error)
            return
        asked = {key: place for key, place in places.items() if place.search.directory in filled}
        for attempt in attempts:
            attempt.outputs = None if attempt.key in asked else []
            attempt.saving.is_due = unseen.get(attempt.key) in filled
            attempt.saving.is_done = attempt.saving.is_done or not attempt.saving.is_due
        leaving = [attempt for attempt in attempts if attempt.key in asked]
        if leaving:
            self._send(leaving, lambda: outputs.find(self._host, list(asked.values())), self._found)

    def _found(self, attempts: Sequence[Attempt], places: list[Place]) -> None:
        """Small ones travel together. A large one does not keep others waiting longer than it must."""
        pairs = list(zip(attempts, places, strict=True))
        for portion in outputs.portions(pairs, lambda pair: pair[1].size):
            self._hand_over(portion)

    def _hand_over(self, portion: Sequence[Found]) -> None:
        attempts, places = [attempt for attempt, _ in portion], [place for _, place in portion]
        self._send(attempts, lambda: outputs.hand_over(self._host, self._link, places), _note)

    def _send(
        self, attempts: Sequence[Attempt], work: Work, then: Callable[[Sequence[Attempt], list[Any]], None]
    ) -> None:
        for attempt in attempts:
            attempt.collecting = True

        def done(result: list[Any] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.collecting = False
            if error is not None:
                self._failed(attempts, error)
            elif result is not None:
                then(attempts, result)

        self._errands.send(LANE, work, done)

    def _failed(self, attempts: Sequence[Attempt], error: Exception) -> None:
        self._pause_until = self._clock() + PAUSE_S
        keys = ", ".join(str(attempt.key) for attempt in attempts)
        if isinstance(error, errors.YardUnreachable):
            self._trouble(error)
        elif isinstance(error, errors.DiskFull | Unreachable):
            log.warning("the outputs of %s wait: %s", keys, error)
        else:
            log.error("the outputs of %s cannot be brought back: %r", keys, error)
            _note(attempts, [Collected(notes=[f"outputs left out: {error}"]) for _ in attempts])

    def place(self, attempt: Attempt) -> Place:
        directory, home = self._stager.output_directory(attempt), attempt.job.directory
        own = directory == f"{home}/outputs"
        # Elsewhere lies what others left, too: only what changed since this attempt began is its own.
        marks = () if own else (f"{home}/started/runner.json", f"{home}/spec.json")
        named = globs.pattern(attempt.claim.spec.get("outputs", ["**"]))
        return Place(search=Search(directory=directory, pattern=named, newer_than=marks), own=own)


def _is_whole(attempt: Attempt) -> bool:
    """Whether the yard has everything of it. A runner that left no record may wake up, and must find its directory."""
    is_gone = attempt.record is not None and attempt.record.get("tree_gone") is not False
    return is_gone and not (relay.missing(attempt) or attempt.left_out or attempt.disowned)


def _may_have_saved(attempt: Attempt) -> bool:
    return not (attempt.disowned or attempt.saving.is_done)


def _wants_outputs(attempt: Attempt) -> bool:
    return not attempt.disowned and bool(attempt.claim.spec.get("outputs", ["**"]))


def _note(attempts: Sequence[Attempt], collected: Sequence[Collected]) -> None:
    for attempt, brought in zip(attempts, collected, strict=True):
        attempt.outputs = brought.files
        attempt.left_out = bool(brought.notes)
        attempt.notes += brought.notes
