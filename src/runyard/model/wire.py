"""The messages of agents and the yard. Each is JSON by `to_json` and back by `parse`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import fields, nodes
from runyard.model.declaration import Declared, field
from runyard.model.json_schema import text
from runyard.model.nodes import EVERYBODY, Limits
from runyard.model.resources import Capacity, Resources
from runyard.model.spec_values import NAME, RUN_NUMBER
from runyard.model.states import AttemptState
from runyard.model.values import Checked, Choice, Digest, Flag, Many, Number, Object, Part, Plain, Text, Whole

LARGEST = 1 << 62
# Of the yard, which has checked it.
ANY_TEXT = Checked(lambda value, where: fields.text(value, where, LARGEST, empty=True, raw=True), text())
OUTPUTS, CHECKPOINTS = "outputs", "checkpoints"  # what may be wished for while an attempt goes on
RELAYED_FILES = ("log", "stdout", "stderr", "metrics.jsonl", "usage.jsonl")  # what comes back by offset


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptKey:
    """Names one attempt for ever: the run's number and the attempt's, counted from 1."""

    run: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.run}.{self.attempt}"

    def to_json(self) -> str:
        return str(self)

    @classmethod
    def from_text(cls, text: str) -> AttemptKey:
        run, _, attempt = text.partition(".")
        return cls(run=int(run), attempt=int(attempt))


def _key(value: object, where: str) -> AttemptKey:
    if not isinstance(value, str) or not KEY.fullmatch(value):
        raise errors.InvalidInput(f"{where}: {str(value)[:80]!r} is not an attempt", "write it like 42.1")
    return AttemptKey.from_text(value)


KEY = re.compile(r"[1-9][0-9]{0,17}\.[1-9][0-9]{0,8}")
ATTEMPT = Checked(_key, text("run.attempt, such as 42.1", pattern=f"^{KEY.pattern}$"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello(Declared):
    """An agent introduces itself: `incarnation` rises with each start, and older ones are refused from then on."""

    place: ClassVar[str] = "hello"

    site: str = field(NAME)
    agent: str = field(NAME)
    node: str = field(Text(300))
    boot_id: str = field(Text(100, empty=True))
    version: str = field(Text(100, empty=True))
    total: Capacity = field(Part(Capacity))
    # cron comes once a minute
    lease: int = field(
        Whole(0, 86400), default=0, help="Seconds it may be silent, where that is more than the yard's own lease"
    )
    labels: tuple[str, ...] = field(
        Many(Checked(nodes.parse_label, nodes.LABEL_SCHEMA), nodes.MOST), default=(), help="Of the node"
    )
    limits: Limits = field(Part(Limits), default=EVERYBODY, help="Whose runs it takes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk(Declared):
    place: ClassVar[str] = "disk"
    about: ClassVar[str] = "Free space where runs are written; of several directories the one that is nearest to full."

    path: str = field(Text(4096, empty=True), help="Where runs are written")
    free: int = field(Whole(0, LARGEST), help="Bytes")
    kept: int = field(Whole(0, LARGEST), help="With less than this, nothing new is started")
    cache: int | None = field(
        Whole(0, LARGEST), default=None, help="Bytes of code and data for later runs; null: not known yet"
    )
    cache_limit: int | None = field(
        Whole(0, LARGEST), default=None, help="What of that is kept at most, besides what runs need"
    )

    @property
    def is_full(self) -> bool:
        return self.free < self.kept


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume(Declared):
    place: ClassVar[str] = "resume"
    about: ClassVar[str] = "What a later attempt may continue from."

    tree: str | None = field(Digest(), default=None, help="The newest checkpoint that the yard has")
    held: bool = field(Flag(), default=False, help="Checkpoints at its site, if there are any, are at least as new")
    afresh: bool = field(Flag(), default=False, help="Continue from nothing: the user wants it to start anew")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Declared):
    """An attempt that now belongs to an agent, with everything needed to run it."""

    place: ClassVar[str] = "claim"
    about: ClassVar[str] = "An attempt that now belongs to the agent."

    key: AttemptKey = field(ATTEMPT)
    batch: str = field(ANY_TEXT, help="The unique name of its batch")
    position: int = field(Whole(1, LARGEST), help="Its index in the batch")
    spec: dict[str, Any] = field(Object(), help="The RunSpec, without fields that have their default")
    argv: list[str] = field(Many(ANY_TEXT, make=list), help="The words to execute")
    resources: Resources = field(Part(Resources))
    avoid: tuple[str, ...] = field(
        Many(ANY_TEXT), default=(), help="Nodes of the site that failed earlier attempts of the run"
    )
    state: AttemptState = field(
        Choice(AttemptState), default=AttemptState.CLAIMED, help="Later ones when an agent adopts what it had before"
    )
    permit: float | None = field(
        Number(), default=None, help="Seconds that it may live after the yard last heard of its agent"
    )
    resume: Resume | None = field(Part(Resume, inline=True), default=None, help="Of a later attempt than the first")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedOutput(Declared):
    place: ClassVar[str] = "output"

    path: str = field(Text(4096))
    size: int = field(Whole(0, LARGEST), help="Bytes")
    digest: str = field(Digest())
    mode: int = field(Whole(0, 0o177777), help="Permission bits")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedCheckpoint(Declared):
    place: ClassVar[str] = "checkpoint"

    tree: str | None = field(Digest(), default=None, help="The folder of its files; null: they are at its site only")
    size: int = field(Whole(0, LARGEST), help="Bytes")
    files: int = field(Whole(0, 1 << 31), help="How many")


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(Declared):
    """What an agent saw of one attempt. Repeating a report is harmless."""

    place: ClassVar[str] = "report"
    brief: ClassVar[bool] = True
    about: ClassVar[str] = "What an agent saw of one attempt."

    key: AttemptKey = field(ATTEMPT)
    state: AttemptState = field(Choice(AttemptState), help="Where the attempt is in its life")
    node: str | None = field(Text(300, empty=True), default=None)
    detail: str | None = field(Text(1 << 16, empty=True), default=None, help='As in "pending in Slurm: Priority"')
    granted: dict[str, Any] | None = field(Object(), default=None, help="{cpus, memory, gpus: [uuid]}")
    native_id: str | None = field(Text(300, empty=True), default=None)
    started_at: float | None = field(Number(), default=None, help="By the node's clock: shown, never compared")
    record: dict[str, Any] | None = field(Object(), default=None, help="The exit record (status.json), if it left one")
    gone: str | None = field(
        Text(1 << 16, empty=True), default=None, help="Without a record: how we know that none of its processes is left"
    )
    outputs: list[dict[str, Any]] = field(Many(Plain(Part(ReportedOutput)), make=list), make=list)
    brought: int | None = field(
        Whole(1, 1 << 31), default=None, help="Of one that continues: the request for outputs that these answer"
    )
    checkpoint: dict[str, Any] | None = field(Plain(Part(ReportedCheckpoint, inline=True)), default=None)
    saved: int | None = field(
        Whole(1, 1 << 31), default=None, help="Of one that continues: the request for its checkpoints that this answers"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncRequest(Declared):
    """One round: what happened, and what could be taken."""

    place: ClassVar[str] = "sync"

    site: str = field(NAME)
    agent: str = field(NAME)
    incarnation: int = field(Whole(0, 1 << 31), help="From hello")
    free: Capacity = field(Part(Capacity))
    ahead: int = field(Whole(0, 10_000), default=0, help="How many more to take than fit now")
    room: int | None = field(
        Whole(0, 1_000_000), default=None, help="The most attempts to take at once; null: as many as the slots allow"
    )
    reports: list[Report] = field(Many(Part(Report), make=list), make=list)
    disk: Disk | None = field(Part(Disk), default=None, help="Null: not known")
    away: str = field(Text(1 << 16, empty=True), default="", help="Why its node does not answer, while it does not")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpiryQuestion(Declared):
    """Which of these runs' checkpoints may be deleted."""

    place: ClassVar[str] = "question"

    site: str = field(NAME)
    agent: str = field(NAME)
    incarnation: int = field(Whole(0, 1 << 31), help="From hello")
    runs: tuple[int, ...] = field(Many(RUN_NUMBER), help="Runs whose checkpoints the agent has")


@dataclass(frozen=True, kw_only=True, slots=True)
class StopOrder(Declared):
    """The request to end an attempt. It is repeated on every sync until the attempt is settled."""

    place: ClassVar[str] = "stop"

    key: AttemptKey = field(ATTEMPT)
    reason: str = field(ANY_TEXT, help='user, early_stop, or "superseded" for an attempt that the yard has given up')


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputWish(Declared):
    """The request to upload what an attempt has written so far. It is repeated on every sync until it is met."""

    place: ClassVar[str] = "wish"

    key: AttemptKey = field(ATTEMPT)
    number: int = field(Whole(1, LARGEST), help="The newest request, counted from 1")
    what: str = field(Choice((OUTPUTS, CHECKPOINTS)), default=OUTPUTS)


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncResponse(Declared):
    place: ClassVar[str] = "response"

    claims: list[Claim] = field(Many(Part(Claim), make=list), make=list)
    stops: list[StopOrder] = field(Many(Part(StopOrder, inline=True), make=list), make=list)
    settled: list[AttemptKey] = field(Many(ATTEMPT, make=list), make=list, help="Reports of endings that are committed")
    given_up: list[AttemptKey] = field(
        Many(ATTEMPT, make=list), make=list,
        help="Of these, those that the yard had given up without the agent's report",
    )  # fmt: skip
    wanted: list[OutputWish] = field(
        Many(Part(OutputWish, inline=True), make=list), make=list, help="Attempts whose files are wanted now"
    )
    more: bool = field(Flag(), default=False, help="Runs are waiting that would fit: sync again when slots are free")
