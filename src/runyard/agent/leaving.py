"""The directories of attempts that are settled go away, as far as the yard has what is in them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.errands import Errands
from runyard.agent.staging import LANE, Store, name_of
from runyard.hosts.base import Host
from runyard.model import keep
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Report

EVERY_S = 10.0  # some go together
MANY, TOO_MANY = 100, 20_000
PUT_OFF_S = 300.0  # that many wait for the end of a burst
LOOK_S = 3600.0  # for those that stay for a while only

log = logging.getLogger(__name__)

Staying = tuple[str, int | None]  # what stays, and for how many seconds
Plans = dict[AttemptKey, Staying]


class Leaving:
    """What is to go is noted before the yard is told of the end: whoever dies before the directory is gone, the next
    incarnation finds the note, and asks the yard what became of it."""

    def __init__(
        self, host: Host, errands: Errands, store: Store, usual: str, notes: Path, clock: Callable[[], float],
        is_tight: Callable[[], object] = lambda: False,
    ) -> None:  # fmt: skip
        """`usual`: what the site says, for runs that say nothing. `notes`: a file of the agent's own. `is_tight`:
        whether the room is needed now."""
        self._host, self._errands, self._store, self._usual, self._clock = host, errands, store, usual, clock
        self._is_tight = is_tight
        self._notes = _Notes(notes)
        self._told: Plans = self._notes.read()  # not yet known to be settled
        self._waiting: Plans = {}
        self._waiting_since = float("-inf")
        self._asked: set[AttemptKey] = set()
        self._due_at, self._done_at = clock() + LOOK_S, float("-inf")

    def tell(self, attempts: Iterable[Attempt]) -> None:
        """The yard is about to hear that these have ended. What it does not have all of stays where it is."""
        told = {attempt.key: self._staying(attempt) for attempt in attempts if attempt.is_whole}
        if told:
            self._told |= told
            self._notes.add(told)

    def owned(self, keys: Collection[AttemptKey]) -> None:
        """After a hello: what was told and is not ours any more was settled, by us or by somebody who gave it up."""
        self._asked = {key for key in self._told if key not in keys}

    def questions(self) -> list[Report]:
        """The yard knows how these ended, and answers which of the two it was."""
        return [Report(key=key, state=AttemptState.ENDED) for key in self._asked]

    def settled(self, keys: Iterable[AttemptKey], given_up: Collection[AttemptKey]) -> None:
        for key in keys:
            staying = self._told.pop(key, None)
            if staying is not None and key not in given_up:
                self._await(key, staying)
            self._asked.discard(key)

    def _await(self, key: AttemptKey, staying: Staying) -> None:
        """What an earlier incarnation left has waited long enough."""
        if key in self._asked:
            self._waiting_since = float("-inf")
        elif not self._waiting:
            self._waiting_since = self._clock()
        self._waiting[key] = staying
        self._due_at = min(self._due_at, max(self._clock(), self._done_at + EVERY_S))

    def next_due(self) -> float:
        return self._due_at

    def advance(self) -> None:
        """In the lane that stages, as everything that removes something does."""
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
                log.warning("what is left of runs cannot be removed: %s", error)
                self._waiting = {**waiting, **self._waiting}
                self._due_at = min(self._due_at, self._clock() + 6 * EVERY_S)
            elif waiting:
                self._notes.replace({**self._told, **self._waiting})

        self._errands.send(LANE, lambda: self._host.leave(cache, runs, leaving), done)

    def _is_in_burst(self) -> bool:
        """For half a minute after many files were removed, some file systems take ten times as long to make new ones:
        they do not use the numbers of those again at once."""
        is_early = self._clock() < self._waiting_since + PUT_OFF_S
        return is_early and MANY < len(self._waiting) < TOO_MANY and not self._is_tight()

    def _staying(self, attempt: Attempt) -> Staying:
        kept = self._wish(attempt).after(succeeded=attempt.succeeded)
        return kept.what, kept.seconds

    def _wish(self, attempt: Attempt) -> keep.Keep:
        try:
            return keep.parse(attempt.claim.spec.get("keep") or self._usual)
        except errors.InvalidInput:  # a newer yard's words
            return keep.Keep(keep.ALL)


class _Notes:
    """A line for each attempt. To lose them leaves directories behind, and nothing else."""

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
