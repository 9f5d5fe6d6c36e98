"""An agent's state of an attempt. All of it can be restored from the yard's claim and the disk.

An attempt is an immutable core and the slices of state of the agent's parts. Only its owner names a slice
(`slices.OWNERS`); all other parts read it through the properties here.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runyard.agent.run.slots import Grant
from runyard.agent.slices import (
    BringingSlice,
    BuiltSlice,
    EndingSlice,
    EnvironmentSlice,
    EvidenceSlice,
    LifeSlice,
    LiveSlice,
    OverSlice,
    PermitSlice,
    Phase,
    RelaySlice,
    SavingSlice,
    StartSlice,
    StoppingSlice,
    ToldSlice,
    WaitingSlice,
    WebSlice,
)
from runyard.backends.base import Job, Presence, Sighting
from runyard.model.spec import STAGED, RunSpec
from runyard.model.wire import AttemptKey, Claim, Report

__all__ = ["HELD_UP", "SUPERSEDED", "Attempt", "Book", "Phase"]

_KILLS = (signal.SIGKILL, signal.SIGTERM)
FROM_OUTSIDE = ("external", "lost")  # stops that the yard did not request
SUPERSEDED = "superseded"  # the reason of a stop order for an attempt that the yard has given up
HELD_UP = "ended; its files cannot be uploaded, because the disk is full"


@dataclass(eq=False, frozen=True, kw_only=True, slots=True)
class Attempt:
    claim: Claim
    job: Job
    fresh: bool = False  # claimed by this incarnation: no other process can have submitted it
    prefer_gpus: tuple[str, ...] = ()  # chosen by an earlier incarnation

    life: LifeSlice = field(default_factory=LifeSlice)
    waiting: WaitingSlice = field(default_factory=WaitingSlice)
    built: BuiltSlice = field(default_factory=BuiltSlice)
    web: WebSlice = field(default_factory=WebSlice)
    environment: EnvironmentSlice = field(default_factory=EnvironmentSlice)
    bringing: BringingSlice = field(default_factory=BringingSlice)
    start: StartSlice = field(default_factory=StartSlice)
    permit: PermitSlice = field(default_factory=PermitSlice)
    evidence: EvidenceSlice = field(default_factory=EvidenceSlice)
    stopping: StoppingSlice = field(default_factory=StoppingSlice)
    over: OverSlice = field(default_factory=OverSlice)
    relay: RelaySlice = field(default_factory=RelaySlice)
    ending: EndingSlice = field(default_factory=EndingSlice)
    live: LiveSlice = field(default_factory=LiveSlice)
    saving: SavingSlice = field(default_factory=SavingSlice)
    told: ToldSlice = field(default_factory=ToldSlice)

    @property
    def key(self) -> AttemptKey:
        return self.claim.key

    @property
    def phase(self) -> Phase:
        return self.life.phase

    @property
    def place(self) -> str:
        """Its directory below the site's runs/; none if the directory of that name belongs to another yard."""
        own = f"{self.key.run}/a{self.key.attempt}"
        return f"refused/{own}" if self.built.refused else own

    @property
    def is_refused(self) -> bool:
        """The directory of its name belongs to another yard."""
        return self.built.refused

    # --- before it starts ---------------------------------------------------------------------------------------

    @property
    def spec(self) -> RunSpec:
        spec = self.built.spec
        assert spec is not None, "only parsed specs are staged"
        return spec

    @property
    def resume_from(self) -> str | None:
        """The checkpoint that must be fetched for it."""
        return self.built.checkpoint

    @property
    def starts_afresh(self) -> bool:
        return self.built.afresh

    @property
    def is_staged(self) -> bool:
        """Whether anything is staged for it from the cache."""
        asks = any(self.claim.spec.get(name) for name in STAGED)
        return asks or self.built.checkpoint is not None or self.built.afresh

    @property
    def fetched(self) -> dict[str, str]:
        return self.web.fetched

    @property
    def python(self) -> str | None:
        """The prefix of its Python environment."""
        return self.environment.prefix

    @property
    def travels_since(self) -> float | None:
        """Since when its files are being transferred; None if they are not."""
        return self.bringing.since if self.bringing.under_way else None

    @property
    def grant(self) -> Grant | None:
        return self.start.grant

    @property
    def submits(self) -> int:
        return self.start.submits

    @property
    def submitted_at(self) -> float:
        return self.start.submitted_at

    @property
    def submitting(self) -> bool:
        return self.start.submitting

    @property
    def pending_detail(self) -> str | None:
        """Why it is not started, is pending in the backend's queue, or has an unknown state there. If it has ended: why
        its end is not reported yet."""
        if self.phase >= Phase.OVER:
            return HELD_UP if self.is_held_up else None
        if self.phase < Phase.STARTED:
            return self.waiting.text or None
        waits = self.sighting.presence in (Presence.PENDING, Presence.UNKNOWN) and not self.made_started
        return self.sighting.text or None if waits else None

    @property
    def told_detail(self) -> str | None:
        """The reason of waiting that was reported to the yard."""
        return self.told.detail

    # --- while it runs ------------------------------------------------------------------------------------------

    @property
    def made_started(self) -> bool:
        return self.evidence.made_started

    @property
    def status(self) -> dict[str, Any] | None:
        return self.evidence.status

    @property
    def status_at(self) -> float:
        return self.evidence.status_at

    @property
    def sighting(self) -> Sighting:
        return self.evidence.sighting

    @property
    def started_at(self) -> float | None:
        """By the node's clock: shown, never compared."""
        return self.status.get("started_at") if self.status else None

    @property
    def stop_reason(self) -> str | None:
        return self.stopping.reason

    @property
    def superseded(self) -> bool:
        return self.stopping.reason == SUPERSEDED

    @property
    def is_drained(self) -> bool:
        return self.evidence.drained

    @property
    def is_relaying(self) -> bool:
        return self.relay.busy

    @property
    def offsets(self) -> dict[str, int | None]:
        return self.relay.offsets

    @property
    def has_more(self) -> bool:
        return self.relay.has_more

    @property
    def disowned(self) -> bool:
        return self.relay.disowned

    @property
    def shown(self) -> list[Report]:
        """Reports of uploaded outputs and checkpoints of a running attempt."""
        return [report for report in (self.live.report, self.saving.report) if report is not None]

    @property
    def untold(self) -> list[Report]:
        """Those reports that the yard has not received."""
        return [report for report in self.shown if not any(report is known for known in self.told.shown)]

    # --- when it is over ----------------------------------------------------------------------------------------

    @property
    def over_at(self) -> float:
        return self.over.at

    @property
    def gone(self) -> str | None:
        return self.over.gone

    @property
    def never_ran(self) -> bool:
        return self.over.record is not None

    @property
    def record(self) -> dict[str, Any] | None:
        """The exit record, once there is one."""
        status = self.evidence.status
        if status is None or status.get("state") != "ended" or not isinstance(status.get("ending"), str):
            return self.over.record
        return status

    @property
    def wants_word(self) -> bool:
        """It was ended from outside: the backend may know by whom and why."""
        record = self.record
        return record is not None and (record.get("stop_reason") in FROM_OUTSIDE or _was_killed(record))

    @property
    def prevented(self) -> str | None:
        """Why it was not started, if so. A runner's own record has the runner's pid."""
        record = self.record or {}
        return record.get("stop_reason") if "pid" not in record else None

    @property
    def succeeded(self) -> bool:
        record = self.record or {}
        return record.get("ending") == "exit" and record.get("exit_code") == 0

    @property
    def failed_on_full_disk(self) -> bool:
        """It or its runner could not write: its end must be reported even if the disk stays full."""
        record = self.record or {}
        is_full = record.get("ending") == "disk" or record.get("full_directory") or record.get("disk_full")
        return bool(is_full) and not self.succeeded

    @property
    def is_held_up(self) -> bool:
        """The yard's disk is full, so its files cannot be uploaded; this is shown as the reason of waiting."""
        return self.relay.no_room or self.ending.no_room

    @property
    def is_whole(self) -> bool:
        return self.ending.is_whole

    @property
    def report(self) -> Report | None:
        return self.ending.report

    @property
    def saved(self) -> dict[str, Any] | None:
        """Its checkpoints that the yard has, as in a report."""
        return self.saving.told

    @property
    def is_saved(self) -> bool:
        """Its last checkpoint was uploaded, or cannot be."""
        return self.saving.is_done or self.never_ran

    @property
    def notes(self) -> list[str]:
        """Notes for the run's events."""
        fetched = [f"fetched the input {to} {digest}" for to, digest in self.web.fetched.items()]
        return [*fetched, *self.built.notes, *self.ending.notes, *self.saving.notes]


def _was_killed(record: dict[str, Any]) -> bool:
    """By a signal, or with a shell's exit code for it: SIGKILL, usually because memory ran out, or SIGTERM, which a
    scheduler sends to every process of a job; on a busy node the runner may be the last to get it."""
    killed = any(record.get("signal") == each or record.get("exit_code") == 128 + each for each in _KILLS)
    return killed and record["ending"] == "exit"


class Book:
    """All attempts that this agent owns, in the order of their claims."""

    def __init__(self) -> None:
        self._attempts: dict[AttemptKey, Attempt] = {}
        self._dropped: list[Attempt] = []

    def __iter__(self) -> Iterator[Attempt]:
        return iter(tuple(self._attempts.values()))

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._attempts

    def __len__(self) -> int:
        return len(self._attempts)

    def get(self, key: AttemptKey) -> Attempt | None:
        return self._attempts.get(key)

    def add(self, attempt: Attempt) -> None:
        self._attempts[attempt.key] = attempt

    def move(self, attempt: Attempt, phase: Phase) -> None:
        attempt.life.phase = phase

    def drop(self, key: AttemptKey) -> None:
        attempt = self._attempts.pop(key, None)
        if attempt is not None:
            self._dropped.append(attempt)

    def take_dropped(self) -> list[Attempt]:
        """Those that were dropped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def in_phase(self, *phases: Phase) -> list[Attempt]:
        return [attempt for attempt in self._attempts.values() if attempt.life.phase in phases]
