"""From the end of an attempt to the yard's word that it is settled: files, outputs, report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
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
from runyard.model.digest import FOUND_S

LANE = "outputs"
PATIENCE_S = 10.0  # for files that are shorter than the exit record says
FULL_PATIENCE_S = 60.0  # for room, of a run that a full disk has ended
FRESH_S = FOUND_S / 2  # what the yard was asked about longer ago is asked about again
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
        for attempt in over:
            if attempt.found_at is None and (attempt.outputs or (attempt.saving.is_done and attempt.saving.told)):
                attempt.found_at = self._clock()
        brought = [attempt for attempt in over if attempt.outputs is not None and attempt.saving.is_done]
        complete = [attempt for attempt in brought if self._is_relayed(attempt) and self._is_fresh(attempt)]
        for attempt in complete:
            attempt.is_whole = _is_whole(attempt)
            attempt.report = attempt.end_report(self._node)
            attempt.phase = Phase.TOLD
        return complete

    def owned(self) -> None:
        """After a hello: what the yard could not be told for long is asked for again."""
        for attempt in self._book.in_phase(Phase.TOLD):
            self._is_fresh(attempt)

    def _is_fresh(self, attempt: Attempt) -> bool:
        """Whether the yard is sure to have what it is told of. Else that is brought once more."""
        if attempt.found_at is None or self._clock() < attempt.found_at + FRESH_S:
            return True
        attempt.bring_again()
        return False

    def next_due(self) -> float:
        """When a pause ends that somebody waits for."""
        return self._pause_until if self._uncollected() else float("inf")

    def _uncollected(self) -> list[Attempt]:
        return [a for a in self._book.in_phase(Phase.OVER) if a.outputs is None and not a.collecting]

    def _is_relayed(self, attempt: Attempt) -> bool:
        missing = relay.missing(attempt)
        if missing and not attempt.relaying and (self._is_short(attempt) or self._has_no_room(attempt)):
            log.warning("attempt %s: not everything could be relayed: %s", attempt.key, missing)
            return True
        return not missing

    def _is_short(self, attempt: Attempt) -> bool:
        """All that is there was relayed."""
        return attempt.drained and self._clock() >= attempt.over_at + PATIENCE_S

    def _has_no_room(self, attempt: Attempt) -> bool:
        """The yard may be on the disk that ended the run: what it does not take stays in the run's directory then. All
        others wait until there is room for everything that they left."""
        is_late = self._clock() >= attempt.over_at + FULL_PATIENCE_S
        return is_late and bool(attempt.held_up) and attempt.failed_on_full_disk

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
            if isinstance(error, errors.DiskFull):
                hold_up(attempts)
                _leave_out([attempt for attempt in attempts if self._has_no_room(attempt)], error)
        else:
            log.error("the outputs of %s cannot be brought back: %r", keys, error)
            _leave_out(attempts, error)

    def place(self, attempt: Attempt) -> Place:
        directory, home = self._stager.output_directory(attempt), attempt.job.directory
        own = directory == f"{home}/outputs"
        # Elsewhere lies what others left, too: only what changed since this attempt began is its own.
        marks = () if own else (f"{home}/started/runner.json", f"{home}/spec.json")
        named = globs.pattern(attempt.claim.spec.get("outputs", ["**"]))
        return Place(search=Search(directory=directory, pattern=named, newer_than=marks), own=own)


def hold_up(attempts: Iterable[Attempt]) -> None:
    """There is no room for what these left. Somebody may wonder why they still run."""
    for attempt in attempts:
        attempt.held_up = "over; what it left cannot be brought to the yard, because the disk is full"


def _is_whole(attempt: Attempt) -> bool:
    """Whether the yard has everything of it. A runner that left no record may wake up, and must find its directory."""
    is_gone = attempt.record is not None and attempt.record.get("tree_gone") is not False
    return is_gone and not (relay.missing(attempt) or attempt.left_out or attempt.disowned)


def _may_have_saved(attempt: Attempt) -> bool:
    return not (attempt.disowned or attempt.saving.is_done)


def _wants_outputs(attempt: Attempt) -> bool:
    return not attempt.disowned and bool(attempt.claim.spec.get("outputs", ["**"]))


def _leave_out(attempts: Sequence[Attempt], error: Exception) -> None:
    _note(attempts, [Collected(notes=[f"outputs left out: {error}"]) for _ in attempts])


def _note(attempts: Sequence[Attempt], collected: Sequence[Collected]) -> None:
    for attempt, brought in zip(attempts, collected, strict=True):
        attempt.outputs = brought.files
        attempt.left_out = bool(brought.notes)
        attempt.notes += brought.notes
