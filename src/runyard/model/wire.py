"""What an agent and the yard say to each other. Each body is JSON by `to_json` and back by `from_json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.model.nodes import EVERYBODY, Limits
from runyard.model.resources import Capacity, Resources
from runyard.model.states import AttemptState

OUTPUTS, CHECKPOINTS = "outputs", "checkpoints"  # what may be wished for while an attempt goes on
RELAYED_FILES = ("log", "stdout", "stderr", "metrics.jsonl", "usage.jsonl")  # what comes back by offset


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptKey:
    """Names one attempt for ever: the run's number and the attempt's, counted from 1."""

    run: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.run}.{self.attempt}"

    @classmethod
    def from_text(cls, text: str) -> AttemptKey:
        run, _, attempt = text.partition(".")
        return cls(run=int(run), attempt=int(attempt))


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """An agent introduces itself: `incarnation` rises with each start, and older ones are refused from then on."""

    site: str
    agent: str
    node: str
    boot_id: str
    version: str
    total: Capacity
    lease: int = 0  # seconds it may be silent, where that is more than the yard's own lease: cron comes once a minute
    labels: tuple[str, ...] = ()  # of the node
    limits: Limits = EVERYBODY  # whose runs it takes

    def to_json(self) -> dict[str, Any]:
        told = {"total": self.total.to_json(), "labels": list(self.labels), "limits": self.limits.to_json()}
        return {**_shallow(self), **told}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Hello:
        read = {
            "total": Capacity.from_json(value["total"]),
            "labels": tuple(value.get("labels", ())),
            "limits": Limits.from_json(value.get("limits", {})),
        }
        return cls(**{**value, **read})


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """How much room there is where runs are written: of several such places the one that is nearest to being full."""

    path: str
    free: int  # bytes
    kept: int  # with less than this, nothing new is started
    cache: int | None = None  # bytes of code and data that are there for later runs; None: nobody has looked yet
    cache_limit: int | None = None

    @property
    def is_full(self) -> bool:
        return self.free < self.kept

    def to_json(self) -> dict[str, Any]:
        return _shallow(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """What a later attempt may go on from."""

    tree: str | None = None  # the newest checkpoint that the yard has
    held: bool = False  # what lies at its place is at least as new, if anything lies there
    afresh: bool = False  # from nothing: somebody wants it to begin anew

    def to_json(self) -> dict[str, Any]:
        return _shallow(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """An attempt that now belongs to an agent, with everything needed to run it."""

    key: AttemptKey
    batch: str  # the unique name of its batch
    position: int  # its index in the batch, from 1
    spec: dict[str, Any]  # RunSpec.to_json()
    argv: list[str]
    resources: Resources
    avoid: tuple[str, ...] = ()  # nodes of the site that failed earlier attempts of the run
    state: AttemptState = AttemptState.CLAIMED  # further on when an agent adopts what it had before
    permit: float | None = None  # it may live for so many seconds after the yard last heard of its agent
    resume: Resume | None = None  # of a later attempt than the first

    def to_json(self) -> dict[str, Any]:
        told = {"key": str(self.key), "resources": self.resources.to_json(), "avoid": list(self.avoid)}
        return {**_shallow(self), **told, "resume": self.resume.to_json() if self.resume else None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Claim:
        return cls(
            **{
                **value,
                "key": AttemptKey.from_text(value["key"]),
                "resources": Resources(**value["resources"]),
                "avoid": tuple(value["avoid"]),
                "state": AttemptState(value["state"]),
                "resume": Resume(**value["resume"]) if value.get("resume") else None,
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What an agent saw of one attempt. Repeating a report is harmless."""

    key: AttemptKey
    state: AttemptState
    node: str | None = None
    detail: str | None = None  # one line for people: "pending in Slurm: Priority"
    granted: dict[str, Any] | None = None  # {cpus, memory, gpus: [uuid]}
    native_id: str | None = None
    started_at: float | None = None  # by the node's clock: shown, never compared
    record: dict[str, Any] | None = None  # the exit record (status.json) of an attempt that left one
    gone: str | None = None  # without a record: how we know that nothing of it runs any more
    outputs: list[dict[str, Any]] = field(default_factory=list)  # [{path, size, digest, mode}]
    brought: int | None = None  # of one that goes on: the wish for outputs that these answer
    checkpoint: dict[str, Any] | None = None  # what it saved: {tree, size, files}; tree None: at its site only
    saved: int | None = None  # of one that goes on: the wish for its checkpoints that this answers

    def to_json(self) -> dict[str, Any]:
        shown = {name: value for name, value in _shallow(self).items() if value not in (None, [])}
        return {**shown, "key": str(self.key)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Report:
        key = AttemptKey.from_text(value["key"])
        return cls(**{**value, "key": key, "state": AttemptState(value["state"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncRequest:
    """One round: what happened, and what could be taken."""

    site: str
    agent: str
    incarnation: int
    free: Capacity
    ahead: int = 0  # how many more to take beyond the free slots, to start the moment one is free
    room: int | None = None  # the most attempts to take at once; None: as many as the slots allow
    reports: list[Report] = field(default_factory=list)
    disk: Disk | None = None  # None: not known
    away: str = ""  # why the agent's node does not answer, while it does not

    def to_json(self) -> dict[str, Any]:
        reports = [report.to_json() for report in self.reports]
        disk = self.disk.to_json() if self.disk else None
        return {**_shallow(self), "free": self.free.to_json(), "reports": reports, "disk": disk}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SyncRequest:
        reports = [Report.from_json(report) for report in value.get("reports", ())]
        disk = Disk(**value["disk"]) if value.get("disk") else None
        return cls(**{**value, "free": Capacity.from_json(value["free"]), "reports": reports, "disk": disk})


@dataclass(frozen=True, kw_only=True, slots=True)
class StopOrder:
    """The wish to end an attempt. It is repeated on every sync until the attempt is settled."""

    key: AttemptKey
    reason: str  # Reason.USER, Reason.EARLY_STOP, or "superseded" for an attempt the yard has given up

    def to_json(self) -> dict[str, Any]:
        return {"key": str(self.key), "reason": self.reason}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StopOrder:
        return cls(key=AttemptKey.from_text(value["key"]), reason=value["reason"])


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputWish:
    """Somebody wants to see what an attempt has left so far. It is repeated on every sync until it is met."""

    key: AttemptKey
    number: int  # the newest wish, counted from 1
    what: str = OUTPUTS

    def to_json(self) -> dict[str, Any]:
        return {"key": str(self.key), "number": self.number, "what": self.what}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OutputWish:
        return cls(key=AttemptKey.from_text(value["key"]), number=value["number"], what=value.get("what", OUTPUTS))


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncResponse:
    claims: list[Claim] = field(default_factory=list)
    stops: list[StopOrder] = field(default_factory=list)
    settled: list[AttemptKey] = field(default_factory=list)  # reports of endings that are committed
    given_up: list[AttemptKey] = field(default_factory=list)  # of these: endings that were not the agent's to report
    wanted: list[OutputWish] = field(default_factory=list)
    more: bool = False  # runs are waiting that would fit: sync again when slots are free

    def to_json(self) -> dict[str, Any]:
        return {
            "claims": [claim.to_json() for claim in self.claims],
            "stops": [stop.to_json() for stop in self.stops],
            "settled": [str(key) for key in self.settled],
            "given_up": [str(key) for key in self.given_up],
            "wanted": [wish.to_json() for wish in self.wanted],
            "more": self.more,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SyncResponse:
        return cls(
            claims=[Claim.from_json(claim) for claim in value["claims"]],
            stops=[StopOrder.from_json(stop) for stop in value["stops"]],
            settled=[AttemptKey.from_text(key) for key in value["settled"]],
            given_up=[AttemptKey.from_text(key) for key in value.get("given_up", ())],
            wanted=[OutputWish.from_json(wish) for wish in value.get("wanted", ())],
            more=value["more"],
        )


def _shallow(value: Any) -> dict[str, Any]:
    return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
