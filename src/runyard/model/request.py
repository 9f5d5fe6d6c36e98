"""Requests of other programs and their replies: the contract between intakes and formats.

A format is one notation of requests and replies. It is pure: bytes in, parameters out; an outcome in, bytes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from runyard.model.reply import Reply

Params = dict[str, Any]
LONGEST = 255  # bytes of a short string in AMQP


class Incoming(Protocol):
    """The parts of a message that a format uses."""

    @property
    def body(self) -> bytes: ...
    @property
    def content_type(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, Any]: ...
    @property
    def correlation_id(self) -> str | None: ...
    @property
    def reply_to(self) -> str | None: ...
    @property
    def message_id(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """The reply address and identity of a message."""

    identity: str = ""  # identifies the message when it is delivered again; '': it has none
    correlation_id: str | None = None
    reply_to: str | None = None

    @classmethod
    def of(cls, message: Incoming, *, correlation_id: object = None) -> Sender:
        """Identified by the correlation id, which a format may find elsewhere, or else by the message id."""
        correlation, own = plain(correlation_id) or plain(message.correlation_id), plain(message.message_id)
        identity = f"correlation id {correlation}" if correlation else f"message id {own}" if own else ""
        return cls(identity=identity, correlation_id=correlation, reply_to=plain(message.reply_to))


def plain(value: object) -> str | None:
    """A string that a database accepts; None for anything else: the library passes on bytes that are not UTF-8."""
    if not isinstance(value, str) or not value or "\0" in value:
        return None
    return value if len(value.encode()) <= LONGEST else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One delivery of a message."""

    sender: Sender
    digest: str  # of the request's contents
    redelivered: bool = False  # the broker has delivered it before


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftFile:
    """An output file of a run."""

    path: str
    size: int
    digest: str
    read: Callable[[], bytes] = field(repr=False)
    link: Callable[[], dict[str, Any]] = field(repr=False)  # {"url", "expires_at"}; empty if the yard has no address


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    view: Mapping[str, Any]  # all fields that a recipe may name for its replies
    files: Sequence[LeftFile] = ()
    log_end: Callable[[], str] = field(default=str, repr=False)  # the last lines of its log

    @property
    def error(self) -> str:
        """Why it did not succeed, in a sentence; empty when it did."""
        if self.view["state"] == "succeeded":
            return ""
        reason, detail = self.view["reason"], self.view["detail"]
        told = f"run {self.view['id']} {self.view['state']}: {reason or 'unknown'}"
        return f"{told}: {detail}" if detail else told


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a request ended: refused with an error, or with all its runs finished."""

    id: int
    queue: str  # the intake's name
    correlation_id: str | None
    reply_to: str
    error: str = ""
    is_group: bool = False  # it requested several runs
    runs: Sequence[RunOutcome] = ()
    reply: Reply = field(default_factory=Reply)  # the contents that the recipe sets


class Format(Protocol):
    """`read` raises InvalidInput with one sentence for the sender; the others never raise because of a message."""

    def identify(self, message: Incoming) -> Sender: ...

    def read(self, message: Incoming, largest: int) -> tuple[list[Params], bool]:
        """The parameters of each run, and whether it is a group. Together they are no larger than `largest` bytes."""
        ...

    def write(self, outcome: Outcome, room: int) -> bytes:
        """The reply, no larger than `room` bytes: if that is not enough, an error that says so."""
        ...
