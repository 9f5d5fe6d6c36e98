"""From a claim to a start: stage it, wait for its slots, hand it to the backend."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.disks import Disks
from runyard.agent.downloads import Downloads
from runyard.agent.errands import Errands
from runyard.agent.pace import Pace
from runyard.agent.permits import Permits
from runyard.agent.pythons import Pythons
from runyard.agent.slots import Slots
from runyard.agent.stage import Stager, StagingFailed
from runyard.agent.staging import Staging, Trouble
from runyard.agent.transfer import CHECKPOINT
from runyard.agent.watch import LANE
from runyard.backends.base import Backend, Batch, Distant, Job, Presence, Refusal, Sighting
from runyard.hosts.base import Unreachable
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim
from runyard.runner.spec import saving_time

MOST_SUBMITS = 5
FIRST_LOOK_S = 0.05  # after a start
PAUSE_S = 5.0  # after the site could not be reached

log = logging.getLogger(__name__)

Fail = Callable[[Attempt, str, str], None]  # the ending and its message


def batch_of(claim: Claim, jobs: Iterable[Job], owner: str, heard_at: float) -> Batch:
    """What the yard put into one batch is the same in all of its claims."""
    spec = claim.spec
    return Batch(
        name=claim.batch, resources=claim.resources, jobs=tuple(jobs), options=spec.get("options", {}),
        choice=NodeChoice.from_json(spec), avoid=claim.avoid, warning=warning_of(spec, claim.resources), owner=owner,
        heard_at=heard_at,
    )  # fmt: skip


def warning_of(spec: Mapping[str, Any], resources: Resources) -> int | None:
    """How long before its time limit a run is warned: the runner does it, and a scheduler is asked to."""
    checkpoint = spec.get("checkpoint")
    if not checkpoint:
        return None
    grace = checkpoint["grace"]
    return int(saving_time(grace, resources.time) if resources.time else grace) or None


class Starter:
    def __init__(
        self, site: str, backend: Backend, stager: Stager, slots: Slots, pace: Pace, book: Book, fail: Fail,
        errands: Errands, staging: Staging, downloads: Downloads, pythons: Pythons, disks: Disks, permits: Permits,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._disks, self._permits = disks, permits
        self._site, self._backend, self._stager, self._slots, self._pace = site, backend, stager, slots, pace
        self._downloads, self._staging, self._pythons = downloads, staging, pythons
        self._book, self._fail, self._errands, self._clock = book, fail, errands, clock
        self._pause_until = float("-inf")

    def receive(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            if claim.key not in self._book:
                attempt = self._stager.receive(claim)
                attempt.fresh = True
                attempt.expect_nothing_held()
                self._book.add(attempt)

    def stage(self) -> None:
        """Everything that takes time happens here, before any slot is held."""
        self._downloads.tell()
        self._staging.tell()
        self._pythons.advance()
        if self._clock() < self._pause_until:
            return
        received = [attempt for attempt in self._book.in_phase(Phase.RECEIVED) if not attempt.bringing]
        understood = [attempt for attempt in received if self._is_possible(attempt)]
        if not understood:
            return
        try:
            self._stager.prepare(understood)
            self._stager.find_checkpoints(understood)
        except StagingFailed as error:
            if not self._waits_for_room(error):
                self._fail_all(understood, error)
            return
        except Unreachable as error:
            self._wait(error)
            return
        here = [attempt for attempt in understood if not self._downloads.bring(attempt, self._fetched)]
        self._staging.bring(here, self._staged)

    def _fetched(self, attempt: Attempt, trouble: Trouble | None) -> None:
        if trouble is None and attempt.phase is Phase.RECEIVED:
            self._staging.bring([attempt], self._staged)
        else:
            self._staged(attempt, trouble)

    def _staged(self, attempt: Attempt, trouble: Trouble | None) -> None:
        """Its environment comes last: what it needs else may be told to be missing before anything is built."""
        if isinstance(trouble, StagingFailed) and trouble.of == CHECKPOINT and attempt.phase is Phase.RECEIVED:
            attempt.checkpoint, attempt.afresh = None, True
            attempt.notes.append(f"started from the beginning: {trouble.message}")
            self._staging.bring([attempt], self._staged)
            return
        if trouble is None or isinstance(trouble, StagingFailed):
            self._downloads.release(attempt)
        if trouble is None and attempt.phase is Phase.RECEIVED:
            self._pythons.bring(attempt, self._brought)
        else:
            self._brought(attempt, trouble)

    def _brought(self, attempt: Attempt, trouble: Trouble | None) -> None:
        """Unless it was told to end meanwhile."""
        if attempt.phase is not Phase.RECEIVED:
            return
        if isinstance(trouble, StagingFailed):
            self._fail(attempt, trouble.ending, trouble.message)
        elif trouble is None:
            attempt.phase = Phase.READY
        elif self._clock() >= self._pause_until:  # the others of this pass have the same trouble
            self._wait(trouble)

    def start(self) -> None:
        """Start what is ready while slots are free, in the order received: a big run is never overtaken here."""
        starting = self._take_slots() if self._clock() >= self._pause_until and not self._is_full() else []
        if not starting:
            return
        try:
            self._stager.freeze(starting)
        except StagingFailed as error:
            if self._waits_for_room(error):
                self._release(starting)
            else:
                self._fail_all(starting, error)
            return
        except Unreachable as error:
            self._release(starting)
            self._wait(error)
            return
        self.submit(starting)
        self._pace.started(len(self._book.in_phase(Phase.STARTED)))

    def _release(self, attempts: Sequence[Attempt]) -> None:
        """They do not start after all."""
        for attempt in attempts:
            self._slots.release(attempt.key)

    def _waits_for_room(self, error: StagingFailed) -> bool:
        """The disk was filled since we last looked, by somebody else: what runs need here is little."""
        self._disks.look_again()
        return error.ending == "disk" and self._is_full()

    def _is_full(self) -> bool:
        """A run that would not find room waits, and says for what."""
        waiting = self._book.in_phase(Phase.RECEIVED, Phase.READY)
        trouble = self._disks.trouble() if waiting else ""
        for attempt in waiting if trouble else ():
            attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=f"waits for room: {trouble}")
        if trouble:
            self._pause_until = self._clock() + PAUSE_S
        return bool(trouble)

    def next_due(self) -> float:
        """When a pause ends that somebody waits for."""
        waiting = self._book.in_phase(Phase.RECEIVED, Phase.READY)
        pause = self._pause_until if waiting and self._clock() < self._pause_until else float("inf")
        return min(pause, self._staging.next_due(), self._pythons.next_due())

    def _wait(self, error: Exception) -> None:
        log.warning("runs wait to be started: %s", error)
        for attempt in self._book.in_phase(Phase.RECEIVED, Phase.READY):
            if isinstance(error, Unreachable) and self._may_return(attempt):
                self._fail(attempt, "returned", str(error))
                continue
            attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=str(error))
        self._pause_until = self._clock() + PAUSE_S

    def _may_return(self, attempt: Attempt) -> bool:
        """Of a machine that does not answer, others of its site may take what was never handed to it."""
        return isinstance(self._backend, Distant) and attempt.fresh and not attempt.submits

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Hand them over, batch by batch. It may be repeated: an attempt makes `started` only once."""
        now, heard_at = self._clock(), self._permits.heard_at()
        for attempt in attempts:
            attempt.phase, attempt.submitted_at, attempt.look_at = Phase.STARTED, now, now + FIRST_LOOK_S
            attempt.permitted_from = heard_at
            attempt.submits += 1
        for _, group in groupby(attempts, key=lambda attempt: attempt.claim.batch):
            members = {attempt.key: attempt for attempt in group}
            claim, jobs = next(iter(members.values())).claim, [attempt.job for attempt in members.values()]
            self._hand_over(batch_of(claim, jobs, self._site, heard_at), members)

    def _hand_over(self, batch: Batch, members: Mapping[AttemptKey, Attempt]) -> None:
        for attempt in members.values():
            attempt.submitting = True

        def done(refusals: list[Refusal], error: Exception | None) -> None:
            for attempt in members.values():
                attempt.submitting, attempt.submitted_at = False, self._clock()
                attempt.sighting = Sighting(presence=Presence.UNKNOWN)  # what was seen of it was seen before
            if error is not None:
                raise error
            for refusal in refusals:
                self._refused(members[refusal.key], refusal)

        self._errands.send(LANE, lambda: self._backend.submit(batch), done)

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
        if attempt.phase is Phase.STARTED and (refusal.final or attempt.submits >= MOST_SUBMITS):
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
        for attempt in filter(self._permits.may_start, self._book.in_phase(Phase.READY)):
            attempt.grant = self._slots.take(attempt.key, attempt.claim.resources, attempt.prefer_gpus)
            if attempt.grant is None:
                break
            starting.append(attempt)
        return starting

    def _fail_all(self, attempts: Sequence[Attempt], error: StagingFailed) -> None:
        for attempt in attempts:
            self._fail(attempt, error.ending, error.message)
