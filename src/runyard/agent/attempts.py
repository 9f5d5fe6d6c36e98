"""What an agent remembers of an attempt. All of it can be found again: in the yard's claim and on disk."""

from __future__ import annotations

import enum
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runyard.agent.slots import Grant
from runyard.backends.base import Job, Presence, Sighting
from runyard.model import units
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState
from runyard.model.wire import CHECKPOINTS, OUTPUTS, RELAYED_FILES, AttemptKey, Claim, Report

OVERRULES = ("preempted", "timeout", "oom", "node_lost", "external")  # why a scheduler ends what it has started
FROM_OUTSIDE = ("external", "lost")  # stops that the yard did not order: somebody's, or of what was given up
SUPERSEDED = "superseded"  # the reason of a stop order for an attempt that the yard has given up


class Phase(enum.IntEnum):
    RECEIVED = 1  # claimed; its directory is not built yet
    READY = 2  # staged; starts the moment its slots are free
    STARTED = 3  # handed to the backend
    OVER = 4  # nothing of it runs; its files are on their way to the yard
    TOLD = 5  # its ending is reported on every sync until the yard has settled it


@dataclass(kw_only=True, slots=True)
class Saving:
    """What the yard was given of a run's checkpoints, and what it still wants."""

    wished: int = 0  # the newest wish to have them now
    shown: int = 0  # the newest one that was met
    busy: bool = False
    looked_at: float | None = None
    torn: int = 0  # how often in a row it was found in the middle of saving
    known: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # files that need not be read again
    told: dict[str, Any] | None = None  # what the yard knows of, as in a report
    is_due: bool | None = None  # at the end: whether there is anything; None: nobody has looked
    is_done: bool = False  # the last of them is in the yard, or never will be


@dataclass(eq=False, kw_only=True, slots=True)
class Attempt:
    claim: Claim
    job: Job
    place: str  # its directory below the site's runs/
    fresh: bool = False  # claimed by this very agent: nobody else can have handed it over
    phase: Phase = Phase.RECEIVED
    spec: RunSpec | None = None  # parsed when it is staged
    bringing: bool = False  # what it needs is on its way
    bringing_since: float | None = None
    fetched: dict[str, str] = field(default_factory=dict)  # digests of inputs from the web, by their names
    python: str | None = None  # the prefix of the Python environment that was built or found for it
    checkpoint: str | None = None  # the tree that it is to go on from, where that must be brought
    afresh: bool = False  # what lies among its checkpoints is not to be gone on from
    prefer_gpus: tuple[str, ...] = ()  # what an earlier incarnation chose for it
    grant: Grant | None = None
    submitted_at: float = 0.0  # by the agent's clock, as all times here that are not called otherwise
    submits: int = 0
    submitting: bool = False  # the backend has not yet said what became of the last one
    permitted_from: float = float("-inf")  # by `kernel.uptime`: its permit counts from there, if it has one

    # Evidence.
    made_started: bool = False
    version: str = ""  # of the status file that was read last
    status: dict[str, Any] | None = None
    status_at: float = 0.0  # when it last changed
    sighting: Sighting = field(default_factory=lambda: Sighting(presence=Presence.UNKNOWN))
    look_at: float = 0.0  # when to look into its directory again
    fresh_until: float = 0.0  # its output is lively until then

    # Relay: bytes that the yard holds; None where only the yard knows.
    offsets: dict[str, int | None] = field(default_factory=dict)
    relaying: bool = False
    has_more: bool = False  # than the last look brought
    disowned: bool = False  # the yard took no bytes: it may have given this attempt up
    drained: bool = False  # the last look found nothing that the yard does not hold

    # The end.
    stop_reason: str | None = None
    stopped_at: float = 0.0
    asked_at: float = 0.0  # when the backend was last asked to end it
    over_at: float = 0.0
    gone: str | None = None
    outputs: list[dict[str, Any]] | None = None  # None: not collected yet
    collecting: bool = False
    found_at: float | None = None  # when the yard was first seen to have some of what it left; None: it has nothing
    held_up: str = ""  # why what it left does not come to the yard
    is_whole: bool = False  # the yard has everything of it
    left_out: bool = False  # some of its outputs did not come back
    notes: list[str] = field(default_factory=list)
    outputs_wished: int = 0  # the newest wish to see what it has left so far
    outputs_shown: int = 0  # the newest one that was met
    outputs_known: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # what was found then: see `Search`
    showing: bool = False
    saving: Saving = field(default_factory=Saving)
    shown: dict[str, Report] = field(default_factory=dict)  # by what was wished for, until the yard has it
    told_running: bool = False  # the yard knows that it runs
    told_detail: str | None = None  # what the yard was told of its waiting in the backend's own queue
    report: Report | None = None
    reported_at: float = float("-inf")

    @property
    def key(self) -> AttemptKey:
        return self.claim.key

    @property
    def record(self) -> dict[str, Any] | None:
        """The exit record, once there is one."""
        if self.status is None or self.status.get("state") != "ended" or not isinstance(self.status.get("ending"), str):
            return None
        return self.status

    @property
    def wants_word(self) -> bool:
        """Somebody ended it from outside: the backend may know who, and why."""
        record = self.record
        return record is not None and (record.get("stop_reason") in FROM_OUTSIDE or _was_killed(record))

    @property
    def prevented(self) -> str | None:
        """Why it was kept from beginning, if it was. A runner's own record has the runner's number."""
        record = self.record or {}
        return record.get("stop_reason") if "pid" not in record else None

    @property
    def succeeded(self) -> bool:
        record = self.record or {}
        return record.get("ending") == "exit" and record.get("exit_code") == 0

    @property
    def failed_on_full_disk(self) -> bool:
        """It, or its runner, could not write: so it may be that nobody makes room before it is told how it ended."""
        record = self.record or {}
        is_full = record.get("ending") == "disk" or record.get("full_directory") or record.get("disk_full")
        return bool(is_full) and not self.succeeded

    @property
    def superseded(self) -> bool:
        return self.stop_reason == SUPERSEDED

    @property
    def started_at(self) -> float | None:
        """By the node's clock: shown, never compared."""
        return self.status.get("started_at") if self.status else None

    def expect_nothing_held(self) -> None:
        """The yard cannot hold anything of an attempt that was just handed out."""
        self.offsets = dict.fromkeys(self.relayed_files(), 0)

    def expect_something_held(self) -> None:
        self.offsets = dict.fromkeys(self.relayed_files(), None)

    def relayed_files(self) -> list[str]:
        split = bool(self.claim.spec.get("split_output"))
        return [name for name in RELAYED_FILES if split or name not in ("stdout", "stderr")]

    def disown(self) -> None:
        """Report it anew: the yard then says what it thinks of it."""
        self.disowned, self.told_running = True, False

    def end_without_runner(self, ending: str, message: str) -> None:
        """Give it the record that a runner would have written."""
        self.status = {
            "state": "ended", "ending": ending, "message": message, "exit_code": None, "signal": None,
            "tree_gone": True, "sizes": {},
        }  # fmt: skip
        self.outputs = []
        self.saving.is_done = True

    @property
    def pending_detail(self) -> str | None:
        """Why it waits in the backend's own queue, while it does; or why nobody knows whether it does. Of one that is
        over: what its ending waits for."""
        if self.phase >= Phase.OVER:
            return self.held_up or None
        waiting = self.sighting.presence in (Presence.PENDING, Presence.UNKNOWN) and not self.made_started
        return self.sighting.text or None if waiting else None

    def pending_report(self) -> Report:
        state = AttemptState.SUBMITTED if self.phase >= Phase.STARTED else AttemptState.CLAIMED
        return Report(key=self.key, state=state, detail=self.pending_detail, native_id=self.sighting.native_id)

    def running_report(self, node: str, *, is_own: bool) -> Report:
        """`is_own`: it runs on the agent's node, whose name is the agent's to give."""
        where = self.sighting.node or node if is_own else self._where() or node
        return Report(
            key=self.key, state=AttemptState.RUNNING, node=where, granted=self._granted(),
            started_at=self.started_at, native_id=self.sighting.native_id,
        )  # fmt: skip

    def bring_again(self) -> None:
        """The yard need not have any more what it had when it was asked. It is asked again, and told of what it has."""
        if self.phase >= Phase.OVER:
            self.phase, self.outputs, self.saving.is_done, self.found_at = Phase.OVER, None, False, None
            return
        if self.shown.pop(OUTPUTS, None):
            self.outputs_shown = 0
        if self.shown.pop(CHECKPOINTS, None):
            self.saving.shown = -1  # so that they are told of, wished for or not

    def show(self, wish: int, files: list[dict[str, Any]]) -> None:
        """These are its outputs so far."""
        self.outputs_shown = wish
        self.shown[OUTPUTS] = Report(key=self.key, state=self._shown_state, outputs=files, brought=wish)

    def show_checkpoint(self, wish: int) -> None:
        """The newest that it saved is in the yard, if there is any."""
        self.saving.shown = wish
        self.shown[CHECKPOINTS] = Report(
            key=self.key, state=self._shown_state, checkpoint=self.saving.told, saved=wish or None
        )

    @property
    def _shown_state(self) -> AttemptState:
        return AttemptState.RUNNING if self.made_started else AttemptState.CLAIMED

    def end_report(self, node: str | None) -> Report:
        return Report(
            key=self.key, state=AttemptState.ENDED, node=self.sighting.node or node or self._where(),
            granted=self._granted(), started_at=self.started_at, native_id=self.sighting.native_id,
            record=self._told_record(), gone=self.gone, outputs=self.outputs or [],
            detail="; ".join(dict.fromkeys(self.notes)) or None, checkpoint=self.saving.told,
        )  # fmt: skip

    def _told_record(self) -> dict[str, Any] | None:
        """The runner's record; where it left none, or was itself ended from outside, the backend's word counts."""
        record, ending = self.record, self.sighting.ending
        if record is None:
            return {"ending": ending, "message": self.gone, "exit_code": None, "signal": None} if ending else None
        if self.stop_reason is not None and record.get("stop_reason") == "external" and record.get("disk_full"):
            return {**record, "stop_reason": self.stop_reason}  # there was no room to tell its runner whose wish it was
        if self.wants_word and ending in OVERRULES:
            return {**record, "ending": ending, "message": f"{self.sighting.text}; {_effort(record)}"}
        return record

    def _where(self) -> str | None:
        """By the name that the backend has for the node, or by the node's own."""
        return self.sighting.node or (self.status or {}).get("node")

    def _granted(self) -> dict[str, Any] | None:
        return self.grant.to_json() if self.grant else None


def _was_killed(record: dict[str, Any]) -> bool:
    """By SIGKILL, by itself or as a shell tells it of its child: most often because memory ran out."""
    killed = record.get("signal") == signal.SIGKILL or record.get("exit_code") == 128 + signal.SIGKILL
    return killed and record["ending"] == "exit"


def _effort(record: dict[str, Any]) -> str:
    peak = record.get("peak_memory")
    used = f" and used {units.show_size(peak)} of memory at most" if peak else ""
    return f"it ran for {units.show_duration(record.get('wall_time'))}{used}"


class Book:
    """All attempts that this agent owns, in the order in which they came."""

    def __init__(self) -> None:
        self._attempts: dict[AttemptKey, Attempt] = {}

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

    def drop(self, key: AttemptKey) -> None:
        self._attempts.pop(key, None)

    def in_phase(self, *phases: Phase) -> list[Attempt]:
        return [attempt for attempt in self._attempts.values() if attempt.phase in phases]
