"""From evidence to state: every report of an agent and every ending is processed here."""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard.model.spec import Retry
from runyard.model.states import AttemptState, Reason, RunState, attempt_advances, check_run_move
from runyard.model.wire import AttemptKey, Report, StopOrder
from runyard.store import attempts, dependency_gates, runs
from runyard.store.dependency_gates import GateKind
from runyard.store.rows import AnyRow
from runyard.yard.checkpoints import checkpoints
from runyard.yard.placement.fair_share import GPU_WEIGHT
from runyard.yard.runs import dependencies, evidence
from runyard.yard.runs.evidence import Ending

HALF_LIFE = 86400.0  # seconds in which past use counts half
INTERRUPTIONS = (
    Reason.TIMEOUT,
    Reason.PREEMPTED,
    Reason.NODE_LOST,
    Reason.LOST,
)  # a run with a checkpoint continues after them
MOST_FRUITLESS = 3  # of these, with nothing saved since the last


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportResult:
    """The result of a report."""

    settled: bool = False  # the ending is committed: the agent may forget the attempt
    given_up: bool = False  # and it is not one that the agent had reported
    stop: StopOrder | None = None
    moved: tuple[int, ...] = ()  # runs whose state changed
    lane: str = ""  # who is charged for what it used
    used: float = 0.0  # cpu seconds; a GPU counts as several cpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A report, with the rows of its attempt and its run when the reports arrived."""

    report: Report
    row: AnyRow | None
    run: AnyRow | None
    held: Callable[[str], int]  # bytes that the yard holds of one of the attempt's files


def cases(connection: Connection, reports: Sequence[Report], held: Callable[[AttemptKey, str], int]) -> list[Case]:
    """Looked up for all of them at once."""
    rows = attempts.get_many(connection, [report.key for report in reports])
    by_id = {run.id: run for run in runs.get_many(connection, {report.key.run for report in reports})}
    return [
        Case(report=report, row=rows.get(key), run=by_id.get(key.run), held=functools.partial(held, key))
        for report, key in ((report, report.key) for report in reports)
    ]


def decide(connection: Connection, now: float, site: str, agent: str, case: Case) -> ReportResult:
    report, row = case.report, case.row
    if row is None or (row.site, row.agent) != (site, agent) or row.state == AttemptState.ENDED:
        if report.state == AttemptState.ENDED:
            reported = row is not None and (row.site, row.agent) == (site, agent) and row.record is not None
            return ReportResult(settled=True, given_up=not reported)
        return ReportResult(stop=StopOrder(key=report.key, reason="superseded"))
    if report.state == AttemptState.ENDED:
        return _end(connection, now, row, case)
    return _progress(connection, now, row, case)


def _progress(connection: Connection, now: float, row: AnyRow, case: Case) -> ReportResult:
    report = case.report
    if report.checkpoint is not None or report.saved is not None:
        _note_checkpoint(connection, now, row, case)
        return ReportResult(moved=(row.run_id,))
    if report.brought is not None:
        attempts.replace_outputs(connection, row.run_id, row.number, report.outputs)
        attempts.change(connection, row.run_id, row.number, brought=report.brought)
        return ReportResult(moved=(row.run_id,))
    if not attempt_advances(AttemptState(row.state), report.state):
        if report.detail is not None and report.detail != row.detail:
            native_id = report.native_id or row.native_id
            attempts.change(connection, row.run_id, row.number, detail=report.detail, native_id=native_id)
            runs.change(connection, row.run_id, detail=report.detail)
        return ReportResult()
    granted = json.dumps(report.granted) if report.granted else row.granted
    attempts.change(
        connection, row.run_id, row.number, state=report.state, detail=report.detail, node=report.node or row.node,
        granted=granted, native_id=report.native_id or row.native_id, started_at=report.started_at,
    )  # fmt: skip
    if report.state != AttemptState.RUNNING:
        runs.change(connection, row.run_id, detail=report.detail)
        return ReportResult()
    runs.change(
        connection, row.run_id, state=RunState.RUNNING, detail=report.detail, node=report.node, granted=granted,
        started_at=report.started_at or now,
    )  # fmt: skip
    add_event(connection, now, row.run_id, row.number, "running", f"started on {report.node}")
    return ReportResult(moved=(row.run_id,))


def _note_checkpoint(connection: Connection, now: float, row: AnyRow, case: Case) -> None:
    report = case.report
    if report.checkpoint is not None and case.run is not None:
        checkpoints.note(connection, now, case.run, row, report.checkpoint)
    if report.saved is not None:
        attempts.change(connection, row.run_id, row.number, brought_checkpoint=report.saved)


def _end(connection: Connection, now: float, row: AnyRow, case: Case) -> ReportResult:
    report, run = case.report, case.run
    assert run is not None, "an attempt has a run"
    ending = evidence.judge(
        report.record, report.gone, cancel_wished=run.cancel_at is not None, stop_detail=run.stop_detail
    )
    missing = _missing_bytes(report.record, case.held)
    if missing:
        ending = Ending(
            state=ending.state, reason=ending.reason, exit_code=ending.exit_code, signal=ending.signal,
            detail=f"{ending.detail}; {missing}".removeprefix("; "),
        )  # fmt: skip
    if report.detail:
        add_event(connection, now, row.run_id, row.number, "note", report.detail)
    if report.outputs or row.brought:
        attempts.replace_outputs(connection, row.run_id, row.number, report.outputs)
    _note_checkpoint(connection, now, row, case)
    moved = end_attempt(connection, now, run, row, ending, report)
    return ReportResult(settled=True, moved=tuple(moved), lane=run.lane, used=_used(now, run, row, report))


def _used(now: float, run: AnyRow, row: AnyRow, report: Report) -> float:
    started_at = report.started_at or row.started_at
    seconds = now - max(started_at, row.claimed_at) if started_at else 0.0
    return float(run.cpus + GPU_WEIGHT * run.gpus) * max(0.0, seconds)


def _missing_bytes(record: dict[str, Any] | None, held: Callable[[str], int]) -> str:
    for file, size in promised(record).items():
        if held(file) < size:
            return f"{file} incomplete: {held(file)} of {size} bytes"
    return ""


def promised(record: dict[str, Any] | None) -> dict[str, int]:
    """The sizes of the files that an attempt has written something to."""
    sizes = (record or {}).get("sizes") or {}
    return {file: size for file, size in sizes.items() if size}


def end_attempt(
    connection: Connection, now: float, run: AnyRow, row: AnyRow, ending: Ending, report: Report | None = None,
    *, proven: bool = True,
) -> list[int]:  # fmt: skip
    """Settle an attempt, and change the state of its run in the same transaction. Returns the runs that changed.

    `proven`: no process of the attempt is alive. Only then may the retry rule start another one.
    """
    record = json.dumps(report.record) if report and report.record else None
    granted = json.dumps(report.granted) if report and report.granted else row.granted
    node = (report.node if report else None) or row.node
    started_at = (report.started_at if report else None) or row.started_at
    native_id = (report.native_id if report else None) or row.native_id
    attempts.change(
        connection, row.run_id, row.number, state=AttemptState.ENDED, outcome=ending.state, reason=ending.reason,
        detail=ending.detail, exit_code=ending.exit_code, signal=ending.signal, node=node, granted=granted,
        record=record, native_id=native_id, started_at=started_at, ended_at=now,
    )  # fmt: skip
    facts = {"node": node, "granted": granted, "record": record, "started_at": started_at}
    next_step = _next_step(connection, run, row, ending, report) if proven else None
    if next_step is not None:
        return [_queue_again(connection, now, run, row.number, ending, next_step, facts)]
    return finish_run(connection, now, run, ending, row.number, facts)


class _Step(enum.StrEnum):
    """Why a run is queued again."""

    RETRIED = "retried"  # its retry rule says so, and has one try less
    CONTINUED = "continued"  # it came to no end of its own, and had saved something
    BEGUN_AGAIN = "begun_again"  # the same, and it had saved nothing: that may not happen too often
    RETURNED = "returned"  # it never began, because its node did not answer


_WHY = {
    _Step.RETRIED: "tried again by its retry rule",
    _Step.CONTINUED: "goes on from what it saved",
    _Step.BEGUN_AGAIN: "it had saved nothing new, and is tried again",
    _Step.RETURNED: "it never began, and waits for another node",
}


def _has_saved(connection: Connection, row: AnyRow, report: Report | None) -> bool:
    if report and report.record and report.record.get("checkpoint_changed"):
        return True
    newest = checkpoints.newest_of(connection, row.run_id)
    return newest is not None and newest.attempt == row.number


def _next_step(connection: Connection, run: AnyRow, row: AnyRow, ending: Ending, report: Report | None) -> _Step | None:
    if ending.state != RunState.FAILED or run.cancel_at is not None:
        return None
    if report and report.record and report.record["ending"] == evidence.RETURNED:
        return _Step.RETURNED
    spec = json.loads(run.spec)
    rule = Retry.parse(spec.get("retry", {"max": 0}))
    if row.number < spec.get("checkpoint", {}).get("max_attempts", 0) and ending.reason in INTERRUPTIONS:
        if _has_saved(connection, row, report):
            return _Step.CONTINUED
        if ending.reason != Reason.TIMEOUT and run.failures < max(rule.max, MOST_FRUITLESS):
            return _Step.BEGUN_AGAIN
    return _Step.RETRIED if run.failures < rule.max and ending.reason in rule.on else None


def _queue_again(
    connection: Connection, now: float, run: AnyRow, attempt: int, ending: Ending, step: _Step, facts: dict[str, Any]
) -> int:
    message = f"attempt {attempt} ended: {ending.reason} ({ending.detail}); {_WHY[step]}"
    runs.change(
        connection,
        run.id,
        state=RunState.QUEUED,
        reason=None,
        exit_code=None,
        queued_at=now,
        failures=run.failures + (step in (_Step.RETRIED, _Step.BEGUN_AGAIN)),
        detail=f"attempt {attempt} ended: {ending.reason}; waits for another",
        **facts,
    )
    add_event(connection, now, run.id, attempt, step, message)
    return int(run.id)


def finish_run(
    connection: Connection, now: float, run: AnyRow, ending: Ending, attempt: int, facts: dict[str, Any] | None = None
) -> list[int]:
    """Give a run its final state (and the facts of its last attempt), and update the runs that depend on it.
    Returns all that changed."""
    check_run_move(run.id, RunState(run.state), ending.state)
    runs.change(
        connection, run.id, state=ending.state, reason=ending.reason, detail=ending.detail or None,
        exit_code=ending.exit_code, ended_at=now, **(facts or {}),
    )  # fmt: skip
    message = f"{ending.reason}: {ending.detail}" if ending.reason else ending.detail
    add_event(connection, now, run.id, attempt, ending.state, message)
    return [run.id, *_tell_children(connection, now, run, ending.state)]


def _tell_children(connection: Connection, now: float, parent: AnyRow, state: RunState) -> list[int]:
    moved: list[int] = []
    for gate in dependency_gates.behind(connection, parent.id):
        if gate.kind == GateKind.TURN and parent.blocked:
            dependencies.leave_turn(connection, gate.gate_id, parent.id)
        if state == RunState.SUCCEEDED or gate.kind != GateKind.OK:
            dependencies.review(connection, gate.gate_id)
        else:
            moved += _fail_children(connection, now, gate.gate_id, dependencies.no_more(parent.id, state))
    return moved


def _fail_children(connection: Connection, now: float, gate_id: int, detail: str) -> list[int]:
    """The gate can never open: end the runs behind it."""
    ending = Ending(state=RunState.FAILED, reason=Reason.DEPENDENCY, detail=detail)
    moved: list[int] = []
    for child_id in dependency_gates.waiting(connection, gate_id):
        child = runs.get(connection, child_id)  # anew: the end of one child may have changed another
        if child is not None and child.state == RunState.QUEUED:
            moved += finish_run(connection, now, child, ending, child.attempt)
    dependency_gates.forget(connection, gate_id)
    return moved


def add_event(connection: Connection, now: float, run_id: int, attempt: int, kind: str, message: str) -> None:
    event = {"run_id": run_id, "attempt": attempt, "at": now, "kind": kind, "message": message}
    runs.insert_events(connection, [event])
