"""New bundles: watched until they stop changing, read, uploaded and submitted, or refused with a reason.

A refused bundle is not tried again; another bundle may take its name.
"""

from __future__ import annotations

import logging
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard import errors
from runyard.agent.spool import looking, notes, place, reading, shelf
from runyard.agent.spool.link import SpoolLink
from runyard.agent.spool.looking import Bundle, Changed, Most
from runyard.agent.spool.notes import Note, Notes
from runyard.agent.spool.reading import Request
from runyard.agent.spool.shelf import NotOurs, Shelf
from runyard.loop import Loop
from runyard.model import bundle as names
from runyard.model.nodes import Limits
from runyard.model.spec_values import name_text

LOOK_S = 1.0
SETTLE_S = 1.0  # a bundle must be unchanged for so long, between two scans
SETTLE_TICKS = 3  # of a single pass
PAUSE_S = 5.0  # after the yard did not answer, or refused it

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    most: Most
    limits: Limits  # which bundles are accepted


class Taking(Loop):
    again_s = LOOK_S

    def __init__(
        self, box: Path, link: SpoolLink, kept: Notes, rules: Rules, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(f"drop-box-{box.name}")
        self._path, self._link, self._notes, self._rules, self._clock = box, link, kept, rules, clock
        self._still: dict[str, tuple[str, float]] = {}  # the last fingerprint, and since when it is unchanged
        self._not_before = float("-inf")
        self._told: dict[str, str] = {}  # the last message about a bundle, and about the drop box itself

    def tick(self) -> bool:
        if self._clock() < self._not_before:
            return False
        try:
            with place.opened(self._path) as box:
                self._look(box)
                self._hand_in_all(box)
            self._told.pop("", None)
        except (errors.RunyardError, OSError) as error:
            self._not_before = self._clock() + PAUSE_S
            self._tell("", error)
        return False

    def settle(self) -> None:
        """Ticks until all bundles that do not change were submitted; the rest is for another pass."""
        self.tick()
        for _ in range(SETTLE_TICKS):
            if not self._still:
                return
            time.sleep(SETTLE_S)
            self.tick()

    def _tell(self, name: str, error: Exception) -> None:
        if str(error) != self._told.get(name):
            log.warning("drop box %s: %s", self._path, error)
        self._told[name] = str(error)

    def _look(self, box: int) -> None:
        found = {
            path.removesuffix(names.HANDED_IN): _status(box, path) for path in os.listdir(box) if _is_handed_in(path)
        }
        for name, status in sorted(found.items(), key=_came):
            if self._is_new(box, name, status):
                self._consider(box, name, status)
        self._still = {name: seen for name, seen in self._still.items() if name in found}

    def _is_new(self, box: int, name: str, status: os.stat_result) -> bool:
        """A second bundle of the same name waits for the end of the first, whose state it then replaces."""
        note = self._notes.get(name)
        if note is None:
            return True
        if not note.over or note.is_of(status.st_ino, _generation(box, name)):
            return False
        shelf.remove(box, note)
        self._notes.drop(name)
        return True

    def _consider(self, box: int, name: str, status: os.stat_result) -> None:
        draft = Note(name=name, inode=status.st_ino, key=notes.new_key(), generation=_generation(box, name))
        try:
            note = self._read(box, draft, status)
        except Changed:
            self._still.pop(name, None)
            return
        except errors.InvalidInput as error:
            note = draft.evolve(refused=sentence(error))
        if note is not None:
            self._notes.keep(note)
            self._still.pop(name, None)

    def _read(self, box: int, draft: Note, status: os.stat_result) -> Note | None:
        """None: it is still changing."""
        names.check_name(draft.name)
        path = f"{draft.name}{names.HANDED_IN}"
        if not stat.S_ISDIR(status.st_mode):
            raise errors.InvalidInput(f"{path} is not a directory", "a bundle is a directory with run.json in it")
        with looking.opened(path, looking.DIRECTORY, box, path) as folder:
            seen = self._look_into(folder, draft.name)
            if seen is None:
                return None
            request = reading.read(folder, seen)
            owner = self._owner(seen, request)
            self._bring(folder, seen, request)
        return draft.evolve(owner=owner, run=request.run)

    def _look_into(self, folder: int, name: str) -> Bundle | None:
        """An error may disappear while the bundle is still being written."""
        try:
            seen = looking.look(folder, self._rules.most)
        except errors.InvalidInput as error:
            if self._has_settled(name, error.message):
                raise
            return None
        return seen if self._has_settled(name, seen.fingerprint()) else None

    def _has_settled(self, name: str, seen: str) -> bool:
        before, since = self._still.get(name, ("", 0.0))
        if before != seen:
            self._still[name] = (seen, self._clock())
            return False
        return self._clock() >= since + SETTLE_S

    def _owner(self, seen: Bundle, request: Request) -> str:
        """The submitter is the owner of its files."""
        try:
            owner = name_text(pwd.getpwuid(seen.owner).pw_name, "owner")
        except KeyError:
            raise errors.InvalidInput(f"its owner, uid {seen.owner}, has no name on this machine") from None
        limits = self._rules.limits
        if not limits.allow(owner, request.project):
            raise errors.InvalidInput(f"this drop box is for {limits.describe()}", "ask its admin")
        return owner

    def _bring(self, folder: int, seen: Bundle, request: Request) -> None:
        """Trees are uploaded last, so that a tree in the yard is complete. The yard checks digests once more."""
        for digest in sorted(self._link.missing_blobs(list(request.files))):
            path = request.files[digest]
            with looking.opened_below(folder, path, seen.files[path]) as file:
                self._put(digest, Path(f"/proc/self/fd/{file}"))
        for digest in sorted(self._link.missing_blobs(list(request.texts))):
            with tempfile.NamedTemporaryFile() as text:
                text.write(request.texts[digest])
                text.flush()
                self._put(digest, Path(text.name))

    def _put(self, digest: str, path: Path) -> None:
        try:
            self._link.put_blob(digest, path, movable=False)
        except errors.InvalidInput as error:  # it has another digest now
            raise Changed(str(path)) from error

    def _hand_in_all(self, box: int) -> None:
        """The state directory claims the bundle: another agent of the same drop box does not submit it, too."""
        for note in self._notes.all():
            if not note.is_pending:
                continue
            try:
                with shelf.opened(box, note) as beside:
                    self._hand_in(note, beside)
            except NotOurs as error:
                self._tell(note.name, error)

    def _hand_in(self, note: Note, beside: Shelf) -> None:
        try:
            self.hand_in(note)
        except errors.Forbidden as error:  # the yard's admin may allow it later
            told = {"bundle": note.name, "id": None, "state": names.WAITING, "detail": sentence(error)}
            beside.write_state(told)
            raise

    def hand_in(self, note: Note) -> None:
        assert note.run is not None
        try:
            run = self._link.hand_in(note.owner, note.key, note.run)
        except (errors.InvalidInput, errors.TooLarge) as error:
            self._notes.keep(note.evolve(refused=sentence(error)))
            return
        log.info("drop box %s: %s of %s is run %d", self._path, note.name, note.owner, run)
        self._notes.keep(note.evolve(id=run))


def sentence(error: errors.RunyardError) -> str:
    return f"{error.message}: {error.fix}" if error.fix else error.message


def _status(box: int, path: str) -> os.stat_result:
    return os.stat(path, dir_fd=box, follow_symlinks=False)


def _generation(box: int, name: str) -> int:
    return looking.generation(f"{name}{names.HANDED_IN}", box)


def _came(found: tuple[str, os.stat_result]) -> tuple[int, str]:
    """Oldest first: a directory's status changes last when it gets its name."""
    name, status = found
    return status.st_ctime_ns, name


def _is_handed_in(name: str) -> bool:
    return name.endswith(names.HANDED_IN) and not name.startswith(".")
