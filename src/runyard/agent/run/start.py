"""Start attempts: wait for their slots, submit them to the backend."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import Stager, StagingFailed
from runyard.agent.context import Context
from runyard.agent.part import Part
from runyard.agent.run.end import Ends
from runyard.agent.run.pace import Pace
from runyard.agent.run.permits import Permits
from runyard.agent.run.slots import Slots
from runyard.agent.run.watch import LANE, Watch
from runyard.agent.waiting import Waits
from runyard.backends.base import Batch, Job, Refusal
from runyard.hosts.base import Unreachable
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim
from runyard.runner.spec import saving_time

MOST_SUBMITS = 5
FIRST_LOOK_S = 0.05  # after a start

log = logging.getLogger(__name__)


def batch_of(claim: Claim, jobs: Iterable[Job], owner: str, heard_at: float) -> Batch:
    """All claims of a batch have the same batch fields."""
    spec = claim.spec
    return Batch(
        name=claim.batch, resources=claim.resources, jobs=tuple(jobs), options=spec.get("options", {}),
        choice=NodeChoice.from_json(spec), avoid=claim.avoid, warning=warning_of(spec, claim.resources), owner=owner,
        heard_at=heard_at,
    )  # fmt: skip


def warning_of(spec: Mapping[str, Any], resources: Resources) -> int | None:
    """How long before its time limit a run gets a signal: from the runner, and from a scheduler."""
    checkpoint = spec.get("checkpoint")
    if not checkpoint:
        return None
    grace = checkpoint["grace"]
    return int(saving_time(grace, resources.time) if resources.time else grace) or None


class Starter(Part):
    def __init__(
        self, context: Context, *, directories: Stager, slots: Slots, pace: Pace, permits: Permits, waits: Waits,
        ends: Ends, watch: Watch,
    ) -> None:  # fmt: skip
        self._context, self._book, self._clock = context, context.book, context.clock
        self._directories, self._slots, self._pace, self._permits = directories, slots, pace, permits
        self._waits, self._ends, self._watch = waits, ends, watch

    def advance(self) -> None:
        """Start ready attempts while slots are free, in the order received: a large run is never overtaken here."""
        starting = [] if self._waits.is_pausing or self._waits.is_full() else self._take_slots()
        if not starting:
            return
        try:
            self._directories.freeze(starting)
        except StagingFailed as error:
            if error.ending == "disk" and self._waits.lacks_room():
                self._release(starting)
            else:
                self._fail_all(starting, error)
            return
        except Unreachable as error:
            self._release(starting)
            self._waits.pause(error)
            return
        self._submit(starting)
        self._pace.started(len(self._book.in_phase(Phase.STARTED)))

    def _take_slots(self) -> list[Attempt]:
        starting = []
        for attempt in filter(self._permits.may_start, self._book.in_phase(Phase.READY)):
            grant = self._slots.take(attempt.key, attempt.claim.resources, attempt.prefer_gpus)
            attempt.start.grant = grant
            if grant is None:
                break
            starting.append(attempt)
        return starting

    def _release(self, attempts: Sequence[Attempt]) -> None:
        """Release slots of attempts that do not start after all."""
        for attempt in attempts:
            self._slots.release(attempt.key)

    def _fail_all(self, attempts: Sequence[Attempt], error: StagingFailed) -> None:
        for attempt in attempts:
            self._ends.fail(attempt, error.ending, error.message)

    # --- those that are started already -------------------------------------------------------------------------

    def adopt(self, attempt: Attempt) -> None:
        """An earlier incarnation has started it: it holds its slots until its end is seen."""
        attempt.start.grant = self._slots.occupy(attempt.key, attempt.claim.resources, attempt.prefer_gpus)
        self.leave_to_backend(attempt)

    def leave_to_backend(self, attempt: Attempt) -> None:
        """It is watched from now on like any started attempt."""
        attempt.start.submitted_at = self._clock()
        self._book.move(attempt, Phase.STARTED)
        self._watch.look_now(attempt)

    def submit_again(self, attempts: Sequence[Attempt]) -> None:
        """Submit attempts again that did not start, in the same batches."""
        for attempt in attempts:
            log.warning("attempt %s did not start", attempt.key)
            if attempt.start.submits >= MOST_SUBMITS:
                self._ends.fail(attempt, "launch", f"its runner did not start after {attempt.start.submits} tries")
        self._submit([attempt for attempt in attempts if attempt.start.submits < MOST_SUBMITS])

    # --- handing over -------------------------------------------------------------------------------------------

    def _submit(self, attempts: Sequence[Attempt]) -> None:
        """Batch by batch. It may be repeated: an attempt creates `started` only once."""
        now, heard_at = self._clock(), self._permits.heard_at()
        for attempt in attempts:
            attempt.start.submitted_at = now
            attempt.start.submits += 1
            self._book.move(attempt, Phase.STARTED)
        self._watch.handed_over(attempts, now + FIRST_LOOK_S)
        self._permits.begin(attempts, heard_at)
        for _, group in groupby(attempts, key=lambda attempt: attempt.claim.batch):
            members = {attempt.key: attempt for attempt in group}
            claim, jobs = next(iter(members.values())).claim, [attempt.job for attempt in members.values()]
            self._hand_over(batch_of(claim, jobs, self._context.site, heard_at), members)

    def _hand_over(self, batch: Batch, members: Mapping[AttemptKey, Attempt]) -> None:
        for attempt in members.values():
            attempt.start.submitting = True

        def done(refusals: list[Refusal], error: Exception | None) -> None:
            for attempt in members.values():
                attempt.start.submitting, attempt.start.submitted_at = False, self._clock()
            self._watch.forget_sighting(members.values())
            if error is not None:
                raise error
            for refusal in refusals:
                self._refused(members[refusal.key], refusal)

        self._context.backend_errands.send(LANE, lambda: self._context.backend.submit(batch), done)

    def _refused(self, attempt: Attempt, refusal: Refusal) -> None:
        """After a temporary refusal the watch finds it absent, and submits it again."""
        log.warning("attempt %s could not be started: %s", attempt.key, refusal.text)
        if attempt.phase is Phase.STARTED and (refusal.final or attempt.start.submits >= MOST_SUBMITS):
            self._ends.fail(attempt, refusal.ending or "launch", refusal.text)
