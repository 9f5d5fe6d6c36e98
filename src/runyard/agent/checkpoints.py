"""Bring what runs save to the yard: now and then, at the end of each attempt, and when somebody asks for it."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.agent import outputs
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.outputs import Collected, Place
from runyard.agent.stage import FULL_DISK, Stager
from runyard.hosts.base import Host, Listing, Search, Unreachable
from runyard.model import checkpoints, paths
from runyard.model.checkpoints import Policy
from runyard.model.resources import Capacity
from runyard.model.site import YARD, SiteSpec
from runyard.model.tree import Tree, TreeFile
from runyard.model.wire import CHECKPOINTS, OutputWish

LANE = "checkpoints"  # of its own: outputs and starts wait for no checkpoint, however large
PAUSE_S = 10.0  # after they could not be brought
TORN_S, MOST_TORN = 5.0, 3  # a run that saves at this moment is looked at again so soon, and so often
PATIENCE_S = 60.0  # an ending waits so long for a yard that has no room

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What was found of one attempt: nothing, all of it, or all but what was being written to."""

    told: dict[str, Any] | None = None  # as in a report
    torn: bool = False
    notes: list[str] = field(default_factory=list)
    known: dict[str, tuple[int, int, str]] = field(default_factory=dict)


class Checkpoints:
    def __init__(
        self, link: Link, host: Host, errands: Errands, book: Book, stager: Stager, usual: str, is_shared: bool,
        spool: Path, trouble: Callable[[Exception], None], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """`usual`: what the site says; `is_shared`: all its attempts see one directory; `spool`: for descriptions on
        their way."""
        self._link, self._host, self._errands, self._book, self._stager = link, host, errands, book, stager
        self._usual, self._is_shared, self._spool = usual, is_shared, spool
        self._trouble, self._clock = trouble, clock
        self._pause_until = float("-inf")

    def take(self, wishes: Iterable[OutputWish]) -> None:
        for wish in wishes:
            attempt = self._book.get(wish.key)
            if attempt is not None and wish.what == CHECKPOINTS:
                attempt.saving.wished = max(attempt.saving.wished, wish.number)

    def advance(self) -> None:
        for attempt in self._book:
            if attempt.saving.wished > attempt.saving.shown and self._has_nothing_to_show(attempt):
                attempt.show_checkpoint(attempt.saving.wished)
        for attempt in self._ending():
            if not self._is_sent(attempt):
                self._leave_there(attempt)
        if self._clock() >= self._pause_until:
            self._look([*self._ending(), *self._due()])

    def next_due(self) -> float:
        running = [self._due_at(attempt) for attempt in self._running()]
        soonest = min(running, default=float("inf"))
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

        def work() -> list[Snapshot]:
            return [self._bring(place) for place in self._find(places)]

        def done(found: list[Snapshot] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.saving.busy = False
            if found is None:
                self._failed(attempts, error)
                return
            for attempt, wish, snapshot in zip(attempts, wishes, found, strict=True):
                self._note(attempt, wish, snapshot)

        self._errands.send(LANE, work, done)

    def _place(self, attempt: Attempt) -> Place:
        """Not `own`: the next attempt writes to the same files, so none may become a blob itself."""
        directory, known = self._stager.checkpoints(attempt), dict(attempt.saving.known)
        return Place(search=Search(directory=directory, pattern=checkpoints.WHOLE, whole=True, known=known), own=False)

    def _find(self, places: Sequence[Place]) -> list[Place]:
        """Most runs save nothing: of those only that is asked."""
        filled = self._host.filled([place.search.directory for place in places])
        looked = iter(outputs.find(self._host, [place for place in places if place.search.directory in filled]))
        return [next(looked) if place.search.directory in filled else place for place in places]

    def _bring(self, place: Place) -> Snapshot:
        if not place.found.files:
            return Snapshot(torn=bool(place.found.torn), notes=_notes(place.found))
        (collected,) = outputs.hand_over(self._host, self._link, [place])
        tree, refused = _tree(collected)
        self._send(tree)
        sent = {file.path for file in tree.files}
        return Snapshot(
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

    def _note(self, attempt: Attempt, wish: int, snapshot: Snapshot) -> None:
        saving = attempt.saving
        is_over = attempt.phase is Phase.OVER
        if snapshot.torn and not is_over and saving.torn < MOST_TORN:  # soon there will be one that is whole
            saving.torn += 1
            return
        saving.torn = 0
        is_new = snapshot.told != saving.told
        saving.told, saving.known = snapshot.told or saving.told, snapshot.known
        if is_over:
            saving.is_done = True
            attempt.notes += snapshot.notes
        elif is_new or wish > saving.shown:
            attempt.show_checkpoint(max(wish, saving.shown))

    def _failed(self, attempts: Sequence[Attempt], error: Exception | None) -> None:
        self._pause_until = self._clock() + PAUSE_S
        passes = isinstance(error, errors.YardUnreachable | errors.DiskFull | Unreachable)
        log.log(logging.WARNING if passes else logging.ERROR, "checkpoints cannot be brought to the yard: %s", error)
        if isinstance(error, errors.YardUnreachable):
            self._trouble(error)
        for attempt in attempts if isinstance(error, errors.DiskFull) or not passes else ():
            if attempt.phase is Phase.OVER and (not passes or self._clock() >= attempt.over_at + PATIENCE_S):
                attempt.notes.append(f"its checkpoints stay at its site: {error}")
                self._leave_there(attempt)

    def _leave_there(self, attempt: Attempt) -> None:
        """There are some, and another attempt may go on from them where they are."""
        attempt.saving.is_done = True
        attempt.saving.told = attempt.saving.told or {"tree": None, "size": 0, "files": 0}


def _tree(collected: Collected) -> tuple[Tree, list[str]]:
    """Of files whose names every file system takes."""
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
        raise errors.DiskFull(f"there is no room in {spool} for checkpoints on their way") from error


def shares_directory(site: SiteSpec, total: Capacity) -> bool:
    """Whether all its attempts see one directory, which is not lost with a node: that of a cluster, or of the machine
    that the yard itself is on."""
    return total.elastic or (site.kind == "local" and site.served_by == YARD)
