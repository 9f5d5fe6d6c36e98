"""What an ending means: one pure function of the evidence.

| witness                                    | the attempt                         |
|--------------------------------------------|-------------------------------------|
| record: exit, code 0                       | succeeded                           |
| record: exit, code > 0 or a signal         | failed: error; disk where there was |
|                                            |   no room for what it saves         |
| record: timeout, oom, launch, staging, disk| failed: that                        |
| record: lost, because its permit ran out   | failed: lost                        |
| record: returned by its agent, never begun | failed: node_lost, and not its own  |
|                                            |   fault; cancelled where that was   |
|                                            |   asked                             |
| record: stopped, on the yard's wish        | cancelled: user, or early_stop where|
|                                            |   the wish was a sweep's            |
| record: stopped, by another user           | cancelled: external                 |
| record: stopped, given up by its scheduler | failed: lost                        |
| the scheduler: preempted, node_lost,       | failed: that                        |
|   rejected, error, timeout, oom, launch    |                                     |
| the scheduler: external                    | cancelled: external; user where a   |
|                                            |   cancel was asked                  |
| no record, proven gone, a cancel was asked | cancelled: user (weaker proof)      |
| no record, proven gone                     | failed: lost                        |
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from runyard.model import units
from runyard.model.states import Reason, RunState

RETURNED = "returned"  # the ending of an attempt that its agent could not hand over: it never began


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    state: RunState
    reason: Reason | None = None
    detail: str = ""
    exit_code: int | None = None  # as a shell would show it: 128+n after signal n
    signal: int | None = None


def judge(
    record: Mapping[str, Any] | None, gone: str | None, *, cancel_wished: bool, stop_detail: str | None = None
) -> Ending:
    """`stop_detail`: why a sweep requested its end, if a sweep did."""
    ending = _judge(record, gone, cancel_wished)
    if stop_detail is None or ending.reason != Reason.USER:
        return ending
    return replace(ending, reason=Reason.EARLY_STOP, detail=f"{stop_detail}; {ending.detail}".removesuffix("; "))


def _judge(record: Mapping[str, Any] | None, gone: str | None, cancel_wished: bool) -> Ending:
    if record is None:
        return _without_record(gone or "it left no record", cancel_wished)
    if record["ending"] in (RETURNED, Reason.EXTERNAL) and cancel_wished:  # a deaf runner is ended by its scheduler
        return _without_record(record.get("message") or "it never began", cancel_wished)
    number, code = record.get("signal"), record.get("exit_code")
    shown = 128 + number if number else code
    state, reason, detail = _BY_ENDING[record["ending"]](record)
    if not record.get("tree_gone", True):
        detail += "; some of its processes could not be ended"
    if record.get("full_directory") and state is not RunState.SUCCEEDED:
        detail += f"; no space is left in {record['full_directory']}"
    elif record.get("disk_full"):
        detail += "; the disk was full while it ran"
    return Ending(state=state, reason=reason, detail=detail.removeprefix("; "), exit_code=shown, signal=number)


def _without_record(gone: str, cancel_wished: bool) -> Ending:
    if cancel_wished:
        return Ending(state=RunState.CANCELLED, reason=Reason.USER, detail=f"cancelled; {gone}")
    return Ending(state=RunState.FAILED, reason=Reason.LOST, detail=gone)


_Verdict = tuple[RunState, Reason | None, str]


def _exit(record: Mapping[str, Any]) -> _Verdict:
    number, code = record.get("signal"), record.get("exit_code")
    if code == 0 and not number:
        return RunState.SUCCEEDED, None, ""
    told = f"killed by {signal_name(number)}" if number else f"exited with {code}"
    return RunState.FAILED, Reason.DISK if record.get("full_directory") else Reason.ERROR, told


def _stopped(record: Mapping[str, Any]) -> _Verdict:
    if record.get("stop_reason") == Reason.LOST:
        return RunState.FAILED, Reason.LOST, f"given up by its scheduler{_after(record)}"
    if record.get("stop_reason") == Reason.EXTERNAL:
        return _external(record)
    return RunState.CANCELLED, Reason.USER, record.get("message") or f"stopped{_after(record)}"


def _external(record: Mapping[str, Any]) -> _Verdict:
    told = record.get("message") or f"stopped from outside runyard{_after(record)}"
    return RunState.CANCELLED, Reason.EXTERNAL, told


def _after(record: Mapping[str, Any]) -> str:
    return f" after {units.show_duration(record['wall_time'])}" if record.get("wall_time") is not None else ""


def _timeout(record: Mapping[str, Any]) -> _Verdict:
    return RunState.FAILED, Reason.TIMEOUT, record.get("message") or f"reached its time limit{_after(record)}"


def _failed(reason: Reason) -> Any:
    return lambda record: (RunState.FAILED, reason, record.get("message") or "")


_BY_ENDING: dict[str, Any] = {
    "exit": _exit,
    "stopped": _stopped,
    "timeout": _timeout,
    "oom": _failed(Reason.OOM),
    "launch": _failed(Reason.LAUNCH),
    "staging": _failed(Reason.STAGING),
    "disk": _failed(Reason.DISK),
    "lost": _failed(Reason.LOST),
    "error": _failed(Reason.ERROR),
    "preempted": _failed(Reason.PREEMPTED),
    "node_lost": _failed(Reason.NODE_LOST),
    RETURNED: _failed(Reason.NODE_LOST),
    "rejected": _failed(Reason.REJECTED),
    "external": _external,
}
ENDINGS = frozenset(_BY_ENDING)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
