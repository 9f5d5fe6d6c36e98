"""Upload outputs of attempts that are still running, on request."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runyard import errors
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import Stager
from runyard.agent.context import Context
from runyard.agent.part import NEVER, Part
from runyard.agent.report import outputs
from runyard.agent.report.outputs import Collected, OutputDirectory
from runyard.hosts.base import Unreachable
from runyard.model.states import AttemptState
from runyard.model.wire import OUTPUTS, Claim, Report, SyncResponse

LANE = "current outputs"  # its own: outputs of ended attempts do not wait for these
PAUSE_S = 2.0  # after a failed upload

log = logging.getLogger(__name__)


class LiveOutputs(Part):
    needs_yard = True

    def __init__(self, context: Context, stager: Stager) -> None:
        self._link, self._host, self._errands = context.link, context.host, context.errands
        self._book, self._clock, self._stager = context.book, context.clock, stager
        self._spool = context.directory / "current"  # copies of files that may be changing
        self._pause_until = float("-inf")

    def heard(self, answer: SyncResponse) -> None:
        for wish in answer.wanted:
            attempt = self._book.get(wish.key)
            if attempt is not None and wish.what == OUTPUTS:
                attempt.live.wished = max(attempt.live.wished, wish.number)

    def owned(self, claims: list[Claim]) -> None:
        """The yard may have deleted unreferenced blobs since: outputs that were not reported are uploaded again."""
        for attempt in self._book:
            if attempt.phase < Phase.OVER and attempt.live.report in attempt.untold:
                attempt.live.report, attempt.live.shown = None, 0

    def advance(self) -> None:
        for attempt in self._wanted(Phase.RECEIVED, Phase.READY):  # they have no outputs yet
            _show(attempt, attempt.live.wished, [])
        wanted = self._wanted(Phase.STARTED)
        if wanted and self._clock() >= self._pause_until:
            self._bring(wanted)

    def next_due(self) -> float:
        return self._pause_until if self._wanted(Phase.STARTED) else NEVER

    def _wanted(self, *phases: Phase) -> list[Attempt]:
        """An attempt that has ended uploads everything soon anyway."""
        return [
            a
            for a in self._book.in_phase(*phases)
            if a.live.wished > a.live.shown and not a.live.busy and not a.superseded
        ]

    def _bring(self, attempts: Sequence[Attempt]) -> None:
        places = [self._searched(attempt) for attempt in attempts]
        wishes = [attempt.live.wished for attempt in attempts]
        for attempt in attempts:
            attempt.live.busy = True

        def work() -> list[tuple[OutputDirectory, Collected]]:
            found = outputs.find(self._host, places)
            return list(zip(found, outputs.hand_over(self._host, self._link, found, self._spool), strict=True))

        def done(brought: list[tuple[OutputDirectory, Collected]] | None, error: Exception | None) -> None:
            for attempt in attempts:
                attempt.live.busy = False
            if brought is None:
                self._failed(attempts, error)
                return
            for attempt, wish, (place, collected) in zip(attempts, wishes, brought, strict=True):
                attempt.live.known = _known(place, collected)
                _show(attempt, wish, collected.files)

        self._errands.send(LANE, work, done)

    def _searched(self, attempt: Attempt) -> OutputDirectory:
        """Unchanged files are not read again: a client that follows a run asks every few seconds."""
        place = outputs.place_of(attempt, self._stager.output_directory(attempt))
        return replace(place, search=replace(place.search, known=attempt.live.known))

    def _failed(self, attempts: Sequence[Attempt], error: Exception | None) -> None:
        """The client waits only for so long: a permanent error is answered with what there is."""
        self._pause_until = self._clock() + PAUSE_S
        log.warning("outputs of running runs cannot be uploaded: %s", error)
        if not isinstance(error, errors.YardUnreachable | errors.DiskFull | Unreachable):
            for attempt in attempts:
                attempt.live.shown = attempt.live.wished


def _show(attempt: Attempt, wish: int, files: list[dict[str, Any]]) -> None:
    """These are its outputs so far."""
    state = AttemptState.RUNNING if attempt.made_started else AttemptState.CLAIMED
    attempt.live.shown = wish
    attempt.live.report = Report(key=attempt.key, state=state, outputs=files, brought=wish)


def _known(place: OutputDirectory, collected: Collected) -> dict[str, tuple[int, int, str]]:
    taken = {file["path"] for file in collected.files}
    return {output.path: output.known for output in place.found.files if output.path in taken}
