"""What attempts have left so far, for people who want to see it before the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from runyard import errors
from runyard.agent import outputs
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.outputs import Collected, Place
from runyard.hosts.base import Host, Unreachable
from runyard.model.wire import OUTPUTS, OutputWish

LANE = "current outputs"  # of its own: those that are over wait for nobody's curiosity
PAUSE_S = 2.0  # after they could not be brought

log = logging.getLogger(__name__)


class Current:
    def __init__(
        self, link: Link, host: Host, errands: Errands, book: Book, place: Callable[[Attempt], Place], spool: Path,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """`spool`: where files are copied to that somebody may be writing to."""
        self._link, self._host, self._errands, self._book = link, host, errands, book
        self._place, self._spool, self._clock = place, spool, clock
        self._pause_until = float("-inf")

    def take(self, wishes: Iterable[OutputWish]) -> None:
        for wish in wishes:
            attempt = self._book.get(wish.key)
            if attempt is not None and wish.what == OUTPUTS:
                attempt.outputs_wished = max(attempt.outputs_wished, wish.number)

    def advance(self) -> None:
        for attempt in self._wanted(Phase.RECEIVED, Phase.READY):  # there is nothing to look for
            attempt.show(attempt.outputs_wished, [])
        wanted = self._wanted(Phase.STARTED)
        if wanted and self._clock() >= self._pause_until:
            self._bring(wanted)

    def next_due(self) -> float:
        return self._pause_until if self._wanted(Phase.STARTED) else float("inf")

    def _wanted(self, *phases: Phase) -> list[Attempt]:
        """One that is over shows everything soon anyway."""
        return [
            a
            for a in self._book.in_phase(*phases)
            if a.outputs_wished > a.outputs_shown and not a.showing and not a.superseded
        ]

    def _bring(self, attempts: Sequence[Attempt]) -> None:
        places = [self._searched(attempt) for attempt in attempts]
        wishes = [attempt.outputs_wished for attempt in attempts]
        for attempt in attempts:
            attempt.showing = True

        def work() -> list[tuple[Place, Collected]]:
            found = outputs.find(self._host, places)
            return list(zip(found, outputs.hand_over(self._host, self._link, found, self._spool), strict=True))

        def done(brought: list[tuple[Place, Collected]] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.showing = False
            if brought is None:
                self._failed(attempts, error)
                return
            for attempt, wish, (place, collected) in zip(attempts, wishes, brought, strict=True):
                attempt.outputs_known = _known(place, collected)
                attempt.show(wish, collected.files)

        self._errands.send(LANE, work, done)

    def _searched(self, attempt: Attempt) -> Place:
        """What did not change since the last time is not read again: who follows a run asks every few seconds."""
        place = self._place(attempt)
        return replace(place, search=replace(place.search, known=attempt.outputs_known))

    def _failed(self, attempts: Sequence[Attempt], error: Exception | None) -> None:
        """Whoever asked waits only for so long: what does not pass is left to them."""
        self._pause_until = self._clock() + PAUSE_S
        log.warning("outputs of runs that go on cannot be brought: %s", error)
        if not isinstance(error, errors.YardUnreachable | errors.DiskFull | Unreachable):
            for attempt in attempts:
                attempt.outputs_shown = attempt.outputs_wished


def _known(place: Place, collected: Collected) -> dict[str, tuple[int, int, str]]:
    taken = {file["path"] for file in collected.files}
    return {output.path: output.known for output in place.found.files if output.path in taken}
