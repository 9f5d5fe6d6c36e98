"""Stage runs at their site in steps, before they take a slot."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import Stager, StagingFailed
from runyard.agent.bring.step import Step, Trouble
from runyard.agent.bring.transfer import CHECKPOINT
from runyard.agent.context import Context
from runyard.agent.part import Part
from runyard.agent.run.end import Ends
from runyard.agent.run.slots import Slots
from runyard.agent.waiting import Waits
from runyard.hosts.base import Unreachable


class Bring(Part):
    def __init__(
        self, context: Context, directories: Stager, steps: Sequence[Step], slots: Slots, waits: Waits, ends: Ends
    ) -> None:
        """`steps`: in their order. Python environments come last, so that anything else that is missing is found before
        one is built."""
        self._book, self._clock = context.book, context.clock
        self._directories, self._steps = directories, steps
        self._slots, self._waits, self._ends = slots, waits, ends

    def advance(self) -> None:
        for step in self._steps:
            step.advance()
        self._pass_on()
        received = [attempt for attempt in self._book.in_phase(Phase.RECEIVED) if not attempt.bringing.under_way]
        if received and not self._waits.is_pausing:
            self._begin(self._prepared([attempt for attempt in received if self._is_possible(attempt)]))
            self._pass_on()

    def next_due(self) -> float:
        if any(step.has_finished for step in self._steps):
            return self._clock()
        return min(step.next_due() for step in self._steps)

    # --- the first step, in one round trip for all --------------------------------------------------------------

    def _is_possible(self, attempt: Attempt) -> bool:
        asked = attempt.claim.resources
        if not self._slots.ever_fits(asked):
            has = self._slots.total.describe()
            self._ends.fail(attempt, "staging", f"it requests {asked.describe()}, and this site has only {has} now")
            return False
        try:
            self._directories.understand(attempt)
        except StagingFailed as error:
            self._ends.fail(attempt, error.ending, error.message)
            return False
        return True

    def _prepared(self, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        """The attempts whose directories exist."""
        try:
            if attempts:
                self._directories.prepare(attempts)
                self._directories.find_checkpoints(attempts)
            return attempts
        except StagingFailed as error:
            if not (error.ending == "disk" and self._waits.lacks_room()):
                for attempt in attempts:
                    self._ends.fail(attempt, error.ending, error.message)
        except Unreachable as error:
            self._waits.pause(error)
        return []

    # --- the others ---------------------------------------------------------------------------------------------

    def _begin(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            attempt.bringing.under_way = True
            attempt.bringing.since = attempt.bringing.since or self._clock()
        self._steps[0].begin(attempts)

    def _pass_on(self) -> None:
        """Move attempts from each finished step to the next one."""
        for number, step in enumerate(self._steps):
            brought = []
            for attempt, trouble in step.finished().items():
                if attempt.phase is not Phase.RECEIVED:  # it was cancelled meanwhile
                    self._leave(attempt)
                elif trouble is None:
                    brought.append(attempt)
                else:
                    self._failed(step, attempt, trouble)
            self._brought(number, brought)

    def _brought(self, number: int, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            for earlier in self._steps[:number]:
                earlier.release(attempt)
        if number + 1 < len(self._steps):
            if attempts:
                self._steps[number + 1].begin(attempts)
            return
        for attempt in attempts:
            self._leave(attempt)
            self._book.move(attempt, Phase.READY)

    def _failed(self, step: Step, attempt: Attempt, trouble: Trouble) -> None:
        if not isinstance(trouble, StagingFailed):  # temporary: staging starts again
            attempt.bringing.under_way = False
            self._waits.pause(trouble)
        elif trouble.of == CHECKPOINT:
            self._directories.start_afresh(attempt, trouble.message)
            step.begin([attempt])
        else:
            self._leave(attempt)
            self._ends.fail(attempt, trouble.ending, trouble.message)

    def _leave(self, attempt: Attempt) -> None:
        """Its staging has finished or failed."""
        attempt.bringing.under_way = False
        for step in self._steps:
            step.release(attempt)
