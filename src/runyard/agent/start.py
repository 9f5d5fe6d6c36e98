"""From a claim to a start: stage it, wait for its slots, hand it to the backend."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import groupby

from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.pace import Pace
from runyard.agent.slots import Slots
from runyard.agent.stage import Stager, StagingFailed
from runyard.backends.base import Backend, Batch, Refusal
from runyard.hosts.base import Unreachable
from runyard.model.wire import Claim

MOST_SUBMITS = 5
FIRST_LOOK_S = 0.05  # after a start
PAUSE_S = 5.0  # after the site could not be reached

log = logging.getLogger(__name__)

Fail = Callable[[Attempt, str, str], None]  # the ending and its message


class Starter:
    def __init__(
        self, backend: Backend, stager: Stager, slots: Slots, pace: Pace, book: Book, fail: Fail,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._backend, self._stager, self._slots, self._pace, self._book = backend, stager, slots, pace, book
        self._fail, self._clock = fail, clock
        self._pause_until = float("-inf")

    def receive(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            if claim.key not in self._book:
                attempt = self._stager.receive(claim)
                attempt.expect_nothing_held()
                self._book.add(attempt)

    def stage(self) -> None:
        """Everything that takes time happens here, before any slot is held."""
        if self._clock() < self._pause_until:
            return
        understood = [attempt for attempt in self._book.in_phase(Phase.RECEIVED) if self._is_possible(attempt)]
        if not understood:
            return
        try:
            self._stager.prepare(understood)
        except StagingFailed as error:
            self._fail_all(understood, error)
            return
        except Unreachable as error:
            self._wait(error)
            return
        for attempt in understood:
            attempt.phase = Phase.READY

    def start(self) -> None:
        """Start what is ready while slots are free, in the order received: a big run is never overtaken here."""
        starting = self._take_slots() if self._clock() >= self._pause_until else []
        if not starting:
            return
        try:
            self._stager.freeze(starting)
        except StagingFailed as error:
            self._fail_all(starting, error)
            return
        except Unreachable as error:
            for attempt in starting:
                self._slots.release(attempt.key)
            self._wait(error)
            return
        self.submit(starting)
        self._pace.started(len(self._book.in_phase(Phase.STARTED)))

    def next_due(self) -> float:
        """When a pause ends that somebody waits for."""
        waiting = self._book.in_phase(Phase.RECEIVED, Phase.READY)
        return self._pause_until if waiting and self._clock() < self._pause_until else float("inf")

    def _wait(self, error: Unreachable) -> None:
        log.warning("runs wait to be started: %s", error)
        self._pause_until = self._clock() + PAUSE_S

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Hand them over, batch by batch. It may be repeated: an attempt makes `started` only once."""
        now = self._clock()
        for attempt in attempts:
            attempt.phase, attempt.submitted_at, attempt.look_at = Phase.STARTED, now, now + FIRST_LOOK_S
            attempt.submits += 1
        for (name, resources), group in groupby(attempts, key=lambda a: (a.claim.batch, a.claim.resources)):
            members = {attempt.key: attempt for attempt in group}
            options = next(iter(members.values())).claim.spec.get("options", {})  # the same in all of a batch
            jobs = tuple(attempt.job for attempt in members.values())
            batch = Batch(name=name, resources=resources, jobs=jobs, options=options)
            for refusal in self._backend.submit(batch):
                self._refused(members[refusal.key], refusal)

    def submit_again(self, attempts: Sequence[Attempt]) -> None:
        """Those that did not begin, batch by batch as the first time."""
        for attempt in attempts:
            log.warning("attempt %s did not begin", attempt.key)
            if attempt.submits >= MOST_SUBMITS:
                self._fail(attempt, "launch", f"its runner did not begin after {attempt.submits} tries")
        self.submit([attempt for attempt in attempts if attempt.submits < MOST_SUBMITS])

    def _refused(self, attempt: Attempt, refusal: Refusal) -> None:
        """One that may be tried again is found absent by the watch, and submitted anew from there."""
        log.warning("attempt %s could not be started: %s", attempt.key, refusal.text)
        if refusal.final or attempt.submits >= MOST_SUBMITS:
            self._fail(attempt, refusal.ending or "launch", refusal.text)

    def _is_possible(self, attempt: Attempt) -> bool:
        asked = attempt.claim.resources
        if not self._slots.ever_fits(asked):
            has = self._slots.total.describe()
            self._fail(attempt, "staging", f"it asks for {asked.describe()}, and this site has only {has} now")
            return False
        try:
            self._stager.understand(attempt)
        except StagingFailed as error:
            self._fail(attempt, error.ending, error.message)
            return False
        return True

    def _take_slots(self) -> list[Attempt]:
        starting = []
        for attempt in self._book.in_phase(Phase.READY):
            attempt.grant = self._slots.take(attempt.key, attempt.claim.resources, attempt.prefer_gpus)
            if attempt.grant is None:
                break
            starting.append(attempt)
        return starting

    def _fail_all(self, attempts: Sequence[Attempt], error: StagingFailed) -> None:
        for attempt in attempts:
            self._fail(attempt, error.ending, error.message)
