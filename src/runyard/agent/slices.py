"""The state of an attempt: one slice for each part that has some, see `attempts.Attempt`."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from runyard.agent.run.slots import Grant
from runyard.backends.base import Presence, Sighting
from runyard.model.spec import RunSpec
from runyard.model.wire import Report

OWNERS = {  # slice → the module below agent/ that alone names it; all others read properties of `Attempt`
    "life": "attempts",
    "waiting": "waiting",
    "built": "bring/directory",
    "web": "bring/inputs",
    "environment": "bring/python",
    "bringing": "bring/bring",
    "start": "run/start",
    "permit": "run/permits",
    "evidence": "run/watch",
    "stopping": "run/stop",
    "over": "run/end",
    "relay": "report/log",
    "ending": "report/ending",
    "live": "report/live_outputs",
    "saving": "report/checkpoints",
    "told": "sync",
}


class Phase(enum.IntEnum):
    RECEIVED = 1  # claimed; its directory is not built yet
    READY = 2  # staged; starts the moment its slots are free
    STARTED = 3  # submitted to the backend
    OVER = 4  # its processes have ended; its files are being uploaded
    TOLD = 5  # its end is reported on every sync until the yard has settled it


# Times are by the agent's clock unless noted.


@dataclass(kw_only=True, slots=True)
class LifeSlice:
    phase: Phase = Phase.RECEIVED


@dataclass(kw_only=True, slots=True)
class WaitingSlice:
    text: str = ""  # why it has not been started


@dataclass(kw_only=True, slots=True)
class BuiltSlice:
    spec: RunSpec | None = None
    refused: bool = False  # the directory of its name belongs to another yard
    checkpoint: str | None = None  # the tree to resume from, if it must be fetched
    afresh: bool = False  # existing checkpoints must not be resumed from
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class WebSlice:
    fetched: dict[str, str] = field(default_factory=dict)  # digests of inputs fetched from URLs, by name


@dataclass(kw_only=True, slots=True)
class EnvironmentSlice:
    prefix: str | None = None  # of the Python environment that was built or found for it


@dataclass(kw_only=True, slots=True)
class BringingSlice:
    under_way: bool = False
    since: float | None = None  # when its directory was complete


@dataclass(kw_only=True, slots=True)
class StartSlice:
    grant: Grant | None = None
    submitted_at: float = 0.0
    submits: int = 0
    submitting: bool = False  # the last submission has not been confirmed by the backend


@dataclass(kw_only=True, slots=True)
class PermitSlice:
    since: float = float("-inf")  # by `kernel.uptime`: start of its permit, if it has one


@dataclass(kw_only=True, slots=True)
class EvidenceSlice:
    made_started: bool = False
    version: str = ""  # of the status file that was read last
    status: dict[str, Any] | None = None
    status_at: float = 0.0  # when it last changed
    sighting: Sighting = field(default_factory=lambda: Sighting(presence=Presence.UNKNOWN))
    look_at: float = 0.0  # when to look into its directory again
    fresh_until: float = 0.0  # until then its output is polled often
    drained: bool = False  # the last look found nothing that the yard does not have


@dataclass(kw_only=True, slots=True)
class StoppingSlice:
    reason: str | None = None
    since: float = 0.0
    asked_at: float = 0.0  # when the backend was last requested to end it


@dataclass(kw_only=True, slots=True)
class OverSlice:
    at: float = 0.0
    gone: str | None = None  # the evidence that it has ended
    record: dict[str, Any] | None = None  # of an attempt that never had a runner


@dataclass(kw_only=True, slots=True)
class RelaySlice:
    offsets: dict[str, int | None] = field(default_factory=dict)  # bytes that the yard has; None: unknown here
    busy: bool = False
    has_more: bool = False  # bytes remain after the last upload
    disowned: bool = False  # the yard refused bytes: it may have given this attempt up
    no_room: bool = False


@dataclass(kw_only=True, slots=True)
class EndingSlice:
    outputs: list[dict[str, Any]] | None = None  # None: not collected yet
    collecting: bool = False
    found_at: float | None = None  # when the yard was first known to have some of its outputs; None: it has none
    no_room: bool = False
    is_whole: bool = False  # the yard has all its files
    left_out: bool = False  # some of its outputs could not be uploaded
    notes: list[str] = field(default_factory=list)
    report: Report | None = None


@dataclass(kw_only=True, slots=True)
class LiveSlice:
    wished: int = 0  # the newest request for its outputs so far
    shown: int = 0  # the newest one that was met
    known: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # files found then: see `OutputSearch`
    busy: bool = False
    report: Report | None = None


@dataclass(kw_only=True, slots=True)
class SavingSlice:
    """Checkpoints of a run that were uploaded, and those that are still requested."""

    wished: int = 0  # the newest request to upload them now
    shown: int = 0  # the newest one that was met
    busy: bool = False
    looked_at: float | None = None
    torn: int = 0  # how often in a row it was found in the middle of saving
    known: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # files that need not be read again
    told: dict[str, Any] | None = None  # checkpoints that the yard has, as in a report
    is_due: bool | None = None  # at the end: whether there is anything to upload; None: unknown
    is_done: bool = False  # the last one was uploaded, or cannot be
    notes: list[str] = field(default_factory=list)
    report: Report | None = None


@dataclass(kw_only=True, slots=True)
class ToldSlice:
    running: bool = False  # the yard knows that it runs
    detail: str | None = None  # the reason of waiting that was reported
    reported_at: float = float("-inf")
    shown: tuple[Report, ...] = ()  # reports of `LiveSlice` and `SavingSlice` that the yard has
