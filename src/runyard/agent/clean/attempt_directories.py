"""Delete attempt directories once the yard holds their contents."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.bring.cache import LANE, CacheStore, name_of
from runyard.agent.errands import Errands
from runyard.agent.part import Part
from runyard.hosts.base import Host
from runyard.model import keep
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Claim, Report, SyncResponse

EVERY_S = 10.0  # deleted in groups
MANY, TOO_MANY = 100, 20_000
PUT_OFF_S = 300.0  # the longest delay during a burst
LOOK_S = 3600.0  # between checks of directories with a retention time

log = logging.getLogger(__name__)

Staying = tuple[str, int | None]  # what is kept, and for how many seconds
Plans = dict[AttemptKey, Staying]


class AttemptDirectories(Part):
    """A deletion is recorded before the end is reported to the yard: if the agent dies before the directory is deleted,
    the next incarnation finds the record, and asks the yard how the attempt ended."""

    needs_yard = True

    def __init__(
        self, host: Host, errands: Errands, store: CacheStore, usual: str, notes: Path, clock: Callable[[], float],
        is_tight: Callable[[], object] = lambda: False,
    ) -> None:  # fmt: skip
        """`usual`: the site's default of `keep`. `notes`: a file of the agent's own. `is_tight`: whether disk space is
        needed now."""
        self._host, self._errands, self._store, self._usual, self._clock = host, errands, store, usual, clock
        self._is_tight = is_tight
        self._notes = _Notes(notes)
        self._told: Plans = self._notes.read()  # not yet known to be settled
        self._waiting: Plans = {}
        self._waiting_since = float("-inf")
        self._asked: set[AttemptKey] = set()
        self._due_at, self._done_at = clock() + LOOK_S, float("-inf")

    def note(self, attempts: Iterable[Attempt]) -> None:
        """The end of these is about to be reported. Files that the yard does not have completely are kept."""
        told = {attempt.key: self._staying(attempt) for attempt in attempts if attempt.is_whole}
        if told:
            self._told |= told
            self._notes.add(told)

    def owned(self, claims: list[Claim]) -> None:
        """Recorded attempts that are not ours any more were settled by us, or given up."""
        keys = {claim.key for claim in claims}
        self._asked = {key for key in self._told if key not in keys}

    def questions(self) -> list[Report]:
        """The yard knows how these ended, and answers which of the two it was."""
        return [Report(key=key, state=AttemptState.ENDED) for key in self._asked]

    def heard(self, answer: SyncResponse) -> None:
        for key in answer.settled:
            staying = self._told.pop(key, None)
            if staying is not None and key not in answer.given_up:
                self._await(key, staying)
            self._asked.discard(key)

    def _await(self, key: AttemptKey, staying: Staying) -> None:
        """Directories of an earlier incarnation are due at once."""
        if key in self._asked:
            self._waiting_since = float("-inf")
        elif not self._waiting:
            self._waiting_since = self._clock()
        self._waiting[key] = staying
        self._due_at = min(self._due_at, max(self._clock(), self._done_at + EVERY_S))

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, like every deletion."""
        if self._clock() < self._due_at:
            return
        if self._is_in_burst():
            self._due_at = self._clock() + EVERY_S
            return
        waiting, self._waiting = self._waiting, {}
        self._due_at, self._done_at = self._clock() + LOOK_S, self._clock()
        cache, runs = self._store.cache(), self._store.runs
        leaving = {name_of(key): staying for key, staying in waiting.items()}

        def done(_: None, error: Exception | None) -> None:
            if error is not None:
                log.warning("directories of finished runs cannot be deleted: %s", error)
                self._waiting = {**waiting, **self._waiting}
                self._due_at = min(self._due_at, self._clock() + 6 * EVERY_S)
            elif waiting:
                self._notes.replace({**self._told, **self._waiting})

        self._errands.send(LANE, lambda: self._host.leave(cache, runs, leaving), done)

    def _is_in_burst(self) -> bool:
        """For half a minute after many files were deleted, some file systems take ten times as long to create new ones,
        because they do not reuse inode numbers at once."""
        is_early = self._clock() < self._waiting_since + PUT_OFF_S
        return is_early and MANY < len(self._waiting) < TOO_MANY and not self._is_tight()

    def _staying(self, attempt: Attempt) -> Staying:
        kept = self._wish(attempt).after(succeeded=attempt.succeeded)
        return kept.what, kept.seconds

    def _wish(self, attempt: Attempt) -> keep.Keep:
        try:
            return keep.parse(attempt.claim.spec.get("keep") or self._usual)
        except errors.InvalidInput:  # written by a newer yard
            return keep.Keep(keep.ALL)


class _Notes:
    """One line per attempt. Losing them leaves directories behind, and has no other effect."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Plans:
        found: Plans = {}
        with contextlib.suppress(OSError):
            for line in self._path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, TypeError):  # cut in the middle
                    key, what, seconds = json.loads(line)
                    found[AttemptKey.from_text(key)] = (what, seconds)
        return found

    def add(self, plans: Mapping[AttemptKey, Staying]) -> None:
        with _told(self._path), self._path.open("ab") as file:
            file.write(_lines(plans))

    def replace(self, plans: Mapping[AttemptKey, Staying]) -> None:
        draft = self._path.with_suffix(".tmp")
        with _told(self._path):
            draft.write_bytes(_lines(plans))
            os.replace(draft, self._path)


def _lines(plans: Mapping[AttemptKey, Staying]) -> bytes:
    return b"".join(json.dumps([str(key), *staying]).encode() + b"\n" for key, staying in plans.items())


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error.strerror)
