"""From the end of an attempt until it is settled: upload files and outputs, report the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from runyard import errors
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import Stager
from runyard.agent.clean.attempt_directories import AttemptDirectories
from runyard.agent.context import Context
from runyard.agent.errands import Work
from runyard.agent.part import NEVER, Part
from runyard.agent.report import log as relaying
from runyard.agent.report import outputs
from runyard.agent.report.checkpoints import CheckpointReports
from runyard.agent.report.outputs import Collected, OutputDirectory
from runyard.hosts.base import Unreachable
from runyard.model import units
from runyard.model.digest import FOUND_S
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Report

LANE = "outputs"
PATIENCE_S = 10.0  # for files that are shorter than the exit record says
FULL_PATIENCE_S = 60.0  # for disk space, after a run that ended on a full disk
FRESH_S = FOUND_S / 2  # answers of the yard about blobs that are older are requested again
PAUSE_S = 2.0  # after a failed upload of outputs

OVERRULES = ("preempted", "timeout", "oom", "node_lost", "external")  # why a scheduler ends a job

log = logging.getLogger(__name__)

Found = tuple[Attempt, OutputDirectory]


class Endings(Part):
    needs_yard = True

    def __init__(
        self, context: Context, stager: Stager, checkpoints: CheckpointReports, directories: AttemptDirectories,
        node: str | None, trouble: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        """`node`: where runs execute, unless a scheduler decides; `trouble`: called if the yard does not answer."""
        self._link, self._host, self._errands = context.link, context.host, context.errands
        self._book, self._clock = context.book, context.clock
        self._stager, self._checkpoints, self._directories = stager, checkpoints, directories
        self._node, self._trouble = node, trouble
        self._pause_until = float("-inf")

    def advance(self) -> None:
        for attempt in self._uncollected():
            if attempt.never_ran:  # it cannot have outputs
                attempt.ending.outputs = []
        self._collect(self._uncollected())
        over = self._book.in_phase(Phase.OVER)
        for attempt in over:
            if attempt.ending.found_at is None and (attempt.ending.outputs or (attempt.is_saved and attempt.saved)):
                attempt.ending.found_at = self._clock()
        brought = [attempt for attempt in over if attempt.ending.outputs is not None and attempt.is_saved]
        complete = [attempt for attempt in brought if self._is_relayed(attempt) and self._is_fresh(attempt)]
        for attempt in complete:
            attempt.ending.is_whole = _is_whole(attempt)
            attempt.ending.report = end_report(attempt, self._node)
            self._book.move(attempt, Phase.TOLD)
        self._directories.note(complete)

    def owned(self, claims: list[Claim]) -> None:
        """Outputs whose end could not be reported for long are checked again."""
        for attempt in self._book.in_phase(Phase.TOLD):
            self._is_fresh(attempt)

    def _is_fresh(self, attempt: Attempt) -> bool:
        """Whether the yard surely still has the reported blobs. Otherwise they are uploaded again."""
        if attempt.ending.found_at is None or self._clock() < attempt.ending.found_at + FRESH_S:
            return True
        attempt.ending.outputs = attempt.ending.found_at = None
        self._checkpoints.send_again(attempt)
        self._book.move(attempt, Phase.OVER)
        return False

    def next_due(self) -> float:
        """When a pause ends that attempts wait for."""
        return self._pause_until if self._uncollected() else NEVER

    def _uncollected(self) -> list[Attempt]:
        over = self._book.in_phase(Phase.OVER)
        return [attempt for attempt in over if attempt.ending.outputs is None and not attempt.ending.collecting]

    def _is_relayed(self, attempt: Attempt) -> bool:
        missing = relaying.missing(attempt)
        if missing and not attempt.is_relaying and (self._is_short(attempt) or self._has_no_room(attempt)):
            log.warning("attempt %s: not all files could be uploaded: %s", attempt.key, missing)
            return True
        return not missing

    def _is_short(self, attempt: Attempt) -> bool:
        """All existing bytes were uploaded."""
        return attempt.is_drained and self._clock() >= attempt.over_at + PATIENCE_S

    def _has_no_room(self, attempt: Attempt) -> bool:
        """The yard may be on the disk that is full: files that it cannot store are then kept in the run's directory.
        All other runs wait until there is space for their files."""
        is_late = self._clock() >= attempt.over_at + FULL_PATIENCE_S
        return is_late and attempt.is_held_up and attempt.failed_on_full_disk

    # --- outputs ------------------------------------------------------------------------------------------------

    def _collect(self, attempts: Sequence[Attempt]) -> None:
        """List the outputs of all of these at once; most runs have none, and need nothing more."""
        if not attempts or self._clock() < self._pause_until:
            return
        places = {attempt.key: self._place(attempt) for attempt in attempts if _wants_outputs(attempt)}
        unseen = {attempt.key: self._stager.checkpoints(attempt) for attempt in attempts if _may_have_saved(attempt)}
        try:
            filled = self._host.filled([*(place.search.directory for place in places.values()), *unseen.values()])
        except Unreachable as error:
            self._failed(attempts, error)
            return
        asked = {key: place for key, place in places.items() if place.search.directory in filled}
        for attempt in attempts:
            attempt.ending.outputs = None if attempt.key in asked else []
            self._checkpoints.ended(attempt, there=unseen.get(attempt.key) in filled)
        leaving = [attempt for attempt in attempts if attempt.key in asked]
        if leaving:
            self._send(leaving, lambda: outputs.find(self._host, list(asked.values())), self._found)

    def _found(self, attempts: Sequence[Attempt], places: list[OutputDirectory]) -> None:
        """Small ones are uploaded together, so that a large one delays others as little as possible."""
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
            attempt.ending.collecting = True

        def done(result: list[Any] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.ending.collecting = False
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
            log.warning("the outputs of %s cannot be uploaded yet: %s", keys, error)
            if isinstance(error, errors.DiskFull):
                for attempt in attempts:
                    attempt.ending.no_room = True
                _leave_out([attempt for attempt in attempts if self._has_no_room(attempt)], error)
        else:
            log.error("the outputs of %s cannot be uploaded: %r", keys, error)
            _leave_out(attempts, error)

    def _place(self, attempt: Attempt) -> OutputDirectory:
        return outputs.place_of(attempt, self._stager.output_directory(attempt))


def end_report(attempt: Attempt, node: str | None) -> Report:
    """With the backend's name of the node, or ours, or the node's own."""
    where = attempt.sighting.node or node or (attempt.status or {}).get("node")
    return Report(
        key=attempt.key, state=AttemptState.ENDED, node=where,
        granted=attempt.grant.to_json() if attempt.grant else None, started_at=attempt.started_at,
        native_id=attempt.sighting.native_id, record=_told_record(attempt), gone=attempt.gone,
        outputs=attempt.ending.outputs or [], detail="; ".join(dict.fromkeys(attempt.notes)) or None,
        checkpoint=attempt.saved,
    )  # fmt: skip


def _told_record(attempt: Attempt) -> dict[str, Any] | None:
    """The runner's record; without one, or if the runner was ended from outside, the backend's reason counts."""
    record, ending, reason = attempt.record, attempt.sighting.ending, attempt.stop_reason
    if record is None:
        return {"ending": ending, "message": attempt.gone, "exit_code": None, "signal": None} if ending else None
    if reason is not None and record.get("stop_reason") == "external" and record.get("disk_full"):
        return {**record, "stop_reason": reason}  # on a full disk the reason could not be passed to the runner
    if attempt.wants_word and ending in OVERRULES:
        return {**record, "ending": ending, "message": f"{attempt.sighting.text}; {_effort(record)}"}
    return record


def _effort(record: dict[str, Any]) -> str:
    peak = record.get("peak_memory")
    used = f" and used {units.show_size(peak)} of memory at most" if peak else ""
    return f"it ran for {units.show_duration(record.get('wall_time'))}{used}"


def _is_whole(attempt: Attempt) -> bool:
    """Whether the yard has all its files. A runner without a record may wake up, and needs its directory."""
    is_gone = attempt.record is not None and attempt.record.get("tree_gone") is not False
    is_left = attempt.ending.left_out or attempt.is_refused or attempt.disowned
    return is_gone and not (relaying.missing(attempt) or is_left)


def _may_have_saved(attempt: Attempt) -> bool:
    return not (attempt.disowned or attempt.is_saved)


def _wants_outputs(attempt: Attempt) -> bool:
    return not attempt.disowned and bool(attempt.claim.spec.get("outputs", ["**"]))


def _leave_out(attempts: Sequence[Attempt], error: Exception) -> None:
    _note(attempts, [Collected(notes=[f"outputs left out: {error}"]) for _ in attempts])


def _note(attempts: Sequence[Attempt], collected: Sequence[Collected]) -> None:
    for attempt, brought in zip(attempts, collected, strict=True):
        attempt.ending.outputs = brought.files
        attempt.ending.left_out = bool(brought.notes)
        attempt.ending.notes += brought.notes
