"""Upload checkpoints: regularly, at the end of each attempt, and on request."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import FULL_DISK, Stager
from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.agent.report import outputs
from runyard.agent.report.outputs import Collected, OutputDirectory
from runyard.hosts.base import Listing, OutputSearch, Unreachable
from runyard.model import checkpoints, paths
from runyard.model.checkpoints import Policy
from runyard.model.resources import Capacity
from runyard.model.site import YARD, SiteSpec
from runyard.model.states import AttemptState
from runyard.model.tree import Tree, TreeFile
from runyard.model.wire import CHECKPOINTS, Claim, Report, SyncResponse

LANE = "checkpoints"  # its own: outputs and starts do not wait for large checkpoints
PAUSE_S = 10.0  # after a failed upload
TORN_S, MOST_TORN = 5.0, 3  # a run that is just saving is checked again after so long, and so often
PATIENCE_S = 60.0  # how long an end is delayed by a yard without disk space

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointSnapshot:
    """The checkpoint found of one attempt: none, complete, or without files that were being written."""

    told: dict[str, Any] | None = None  # as in a report
    torn: bool = False
    notes: list[str] = field(default_factory=list)
    known: dict[str, tuple[int, int, str]] = field(default_factory=dict)


class CheckpointReports(Part):
    needs_yard = True

    def __init__(
        self, context: Context, stager: Stager, usual: str, is_shared: bool, trouble: Callable[[Exception], None]
    ) -> None:
        """`usual`: the site's default; `is_shared`: all its attempts share one directory; `trouble`: called if the yard
        does not answer."""
        self._link, self._host, self._errands = context.link, context.host, context.errands
        self._book, self._clock, self._stager = context.book, context.clock, stager
        self._usual, self._is_shared, self._trouble = usual, is_shared, trouble
        self._spool = context.directory / "current"  # for trees that are being uploaded
        self._pause_until = float("-inf")

    def heard(self, answer: SyncResponse) -> None:
        for wish in answer.wanted:
            attempt = self._book.get(wish.key)
            if attempt is not None and wish.what == CHECKPOINTS:
                attempt.saving.wished = max(attempt.saving.wished, wish.number)

    def owned(self, claims: list[Claim]) -> None:
        """The yard may have deleted unreferenced blobs since: checkpoints that were not reported are uploaded again."""
        for attempt in self._book:
            if attempt.phase < Phase.OVER and attempt.saving.report in attempt.untold:
                attempt.saving.report, attempt.saving.shown = None, -1  # so that it is reported, requested or not

    def ended(self, attempt: Attempt, *, there: bool) -> None:
        """It has ended, with checkpoints (`there`) or without."""
        attempt.saving.is_due = there
        attempt.saving.is_done = attempt.saving.is_done or not there

    def send_again(self, attempt: Attempt) -> None:
        """The yard may have deleted the blobs since."""
        attempt.saving.is_done = False

    def advance(self) -> None:
        for attempt in self._book:
            if attempt.saving.wished > attempt.saving.shown and self._has_nothing_to_show(attempt):
                _show(attempt, attempt.saving.wished)
        for attempt in self._ending():
            if not self._is_sent(attempt):
                self._leave_there(attempt)
        if self._clock() >= self._pause_until:
            self._look([*self._ending(), *self._due()])

    def next_due(self) -> float:
        running = [self._due_at(attempt) for attempt in self._running()]
        soonest = min(running, default=NEVER)
        if self._ending():
            soonest = self._clock()
        return max(soonest, self._pause_until)

    # --- whose turn it is ---------------------------------------------------------------------------------------

    def _has_nothing_to_show(self, attempt: Attempt) -> bool:
        return attempt.phase < Phase.STARTED or not self._stager.keeps_checkpoints(attempt)

    def _ending(self) -> list[Attempt]:
        over = self._book.in_phase(Phase.OVER)
        return [a for a in over if a.saving.is_due and not a.saving.is_done and not a.saving.busy]

    def _running(self) -> list[Attempt]:
        started = self._book.in_phase(Phase.STARTED)
        return [a for a in started if a.made_started and not a.saving.busy and not a.superseded]

    def _due(self) -> list[Attempt]:
        now = self._clock()
        return [attempt for attempt in self._running() if self._due_at(attempt) <= now]

    def _due_at(self, attempt: Attempt) -> float:
        saving = attempt.saving
        since = attempt.submitted_at if saving.looked_at is None else saving.looked_at
        if saving.torn:
            return since + TORN_S
        if saving.wished > saving.shown:
            return float("-inf")
        every = self._policy(attempt).every
        return since + every if every is not None and self._stager.keeps_checkpoints(attempt) else float("inf")

    def _policy(self, attempt: Attempt) -> Policy:
        said = (attempt.claim.spec.get("checkpoint") or {}).get("every") or self._usual
        return checkpoints.policy(said, is_shared=self._is_shared)

    def _is_sent(self, attempt: Attempt) -> bool:
        return self._policy(attempt).at_end and self._stager.keeps_checkpoints(attempt)

    # --- looking and sending ------------------------------------------------------------------------------------

    def _look(self, attempts: Sequence[Attempt]) -> None:
        if not attempts:
            return
        wishes = [attempt.saving.wished for attempt in attempts]
        places = [self._place(attempt) for attempt in attempts]
        for attempt in attempts:
            attempt.saving.busy, attempt.saving.looked_at = True, self._clock()

        def work() -> list[CheckpointSnapshot]:
            return [self._bring(place) for place in self._find(places)]

        def done(found: list[CheckpointSnapshot] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.saving.busy = False
            if found is None:
                self._failed(attempts, error)
                return
            for attempt, wish, snapshot in zip(attempts, wishes, found, strict=True):
                self._note(attempt, wish, snapshot)

        self._errands.send(LANE, work, done)

    def _place(self, attempt: Attempt) -> OutputDirectory:
        """Not `own`: the next attempt writes to the same files, so none may be linked as a blob."""
        directory, known = self._stager.checkpoints(attempt), dict(attempt.saving.known)
        return OutputDirectory(
            search=OutputSearch(directory=directory, pattern=checkpoints.WHOLE, whole=True, known=known), own=False
        )

    def _find(self, places: Sequence[OutputDirectory]) -> list[OutputDirectory]:
        """Most runs have no checkpoints, and cost only one check."""
        filled = self._host.filled([place.search.directory for place in places])
        looked = iter(outputs.find(self._host, [place for place in places if place.search.directory in filled]))
        return [next(looked) if place.search.directory in filled else place for place in places]

    def _bring(self, place: OutputDirectory) -> CheckpointSnapshot:
        if not place.found.files:
            return CheckpointSnapshot(torn=bool(place.found.torn), notes=_notes(place.found))
        (collected,) = outputs.hand_over(self._host, self._link, [place])
        tree, refused = _tree(collected)
        self._send(tree)
        sent = {file.path for file in tree.files}
        return CheckpointSnapshot(
            told={"tree": tree.digest, "size": tree.size, "files": len(tree.files)},
            torn=bool(place.found.torn) or len(collected.files) < len(place.found.files),
            notes=[*_notes(place.found), *refused],
            known={output.path: output.known for output in place.found.files if output.path in sent},
        )

    def _send(self, tree: Tree) -> None:
        if not self._link.missing_blobs([tree.digest]):
            return
        with _room(self._spool):
            self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._spool) as file:
                file.write(tree.encode())
                file.flush()
                self._link.put_blob(tree.digest, Path(file.name), False)

    # --- what came of it ----------------------------------------------------------------------------------------

    def _note(self, attempt: Attempt, wish: int, snapshot: CheckpointSnapshot) -> None:
        saving = attempt.saving
        is_over = attempt.phase is Phase.OVER
        if snapshot.torn and not is_over and saving.torn < MOST_TORN:  # there will be a complete one soon
            saving.torn += 1
            return
        saving.torn = 0
        is_new = snapshot.told != saving.told
        saving.told, saving.known = snapshot.told or saving.told, snapshot.known
        if is_over:
            saving.is_done = True
            saving.notes += snapshot.notes
        elif is_new or wish > saving.shown:
            _show(attempt, max(wish, saving.shown))

    def _failed(self, attempts: Sequence[Attempt], error: Exception | None) -> None:
        self._pause_until = self._clock() + PAUSE_S
        passes = isinstance(error, errors.YardUnreachable | errors.DiskFull | Unreachable)
        log.log(logging.WARNING if passes else logging.ERROR, "checkpoints cannot be uploaded: %s", error)
        if isinstance(error, errors.YardUnreachable):
            self._trouble(error)
        for attempt in attempts if isinstance(error, errors.DiskFull) or not passes else ():
            if attempt.phase is Phase.OVER and (not passes or self._clock() >= attempt.over_at + PATIENCE_S):
                attempt.saving.notes.append(f"its checkpoints are kept at its site only: {error}")
                self._leave_there(attempt)

    def _leave_there(self, attempt: Attempt) -> None:
        """They are kept at the site, and another attempt may resume from them there."""
        attempt.saving.is_done = True
        attempt.saving.told = attempt.saving.told or {"tree": None, "size": 0, "files": 0}


def _show(attempt: Attempt, wish: int) -> None:
    """The newest checkpoint, if any, is in the yard."""
    state = AttemptState.RUNNING if attempt.made_started else AttemptState.CLAIMED
    attempt.saving.shown = wish
    attempt.saving.report = Report(key=attempt.key, state=state, checkpoint=attempt.saving.told, saved=wish or None)


def _tree(collected: Collected) -> tuple[Tree, list[str]]:
    """The tree of files whose names are valid everywhere."""
    files, refused = [], list(collected.notes)
    for file in collected.files:
        try:
            path = paths.relative(file["path"], "checkpoint left out")
        except errors.InvalidInput as error:
            refused.append(error.message)
            continue
        files.append(TreeFile(path, file["digest"], file["size"], bool(file["mode"] & 0o100)))
    return Tree.build(files), refused


def _notes(found: Listing) -> list[str]:
    torn = [f"checkpoint left out: {path} was written to while it was read" for path in found.torn]
    return [*(note.replace("output", "checkpoint", 1) for note in found.notes), *torn]


@contextlib.contextmanager
def _room(spool: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        raise errors.DiskFull(f"no disk space in {spool} for the upload of checkpoints") from error


def shares_directory(site: SiteSpec, total: Capacity) -> bool:
    """Whether all its attempts share one directory, which is not lost with a node: that of a cluster, or of the yard's
    own machine."""
    return total.elastic or (site.kind == "local" and site.served_by == YARD)
