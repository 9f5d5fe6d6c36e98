"""Requests of users to existing runs: cancel, retry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from runyard import errors
from runyard.model.roles import Caller
from runyard.model.states import FINAL, Reason, RunState
from runyard.store import attempts, dependency_gates, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard.checkpoints import checkpoints
from runyard.yard.runs import dependencies, settle
from runyard.yard.runs.evidence import Ending
from runyard.yard.runs.lookup import find_run

Outcome = dict[int, AnyRow | errors.RunyardError]

_ASKED = {
    checkpoints.RESUME: "asked to go on from what it saved",
    checkpoints.AFRESH: "asked to try it again from the beginning",
}


def each(
    connection: Connection, caller: Caller, ids: Sequence[int], wish: Callable[[Connection, AnyRow], None]
) -> Outcome:
    """Apply a request to each run; an error of one does not stop the others."""
    outcome: Outcome = {}
    for run_id in dict.fromkeys(ids):
        try:
            wish(connection, _changeable(connection, caller, run_id))
            row = runs.get(connection, run_id)
            assert row is not None
            outcome[run_id] = row
        except errors.RunyardError as error:
            outcome[run_id] = error
    return outcome


def _changeable(connection: Connection, caller: Caller, run_id: int) -> AnyRow:
    run = find_run(connection, run_id)
    if not caller.may_change(run.owner):
        raise errors.Forbidden(f"run {run_id} belongs to {run.owner}", f"ask {run.owner} or an administrator")
    return run


def cancel(connection: Connection, now: float, caller: Caller, run: AnyRow) -> None:
    """A waiting run ends at once; for a run that an agent has, the request is stored, and it ends when its processes
    have."""
    state = RunState(run.state)
    if state in FINAL:
        raise errors.Conflict(
            f"run {run.id} has already {state}" if state != "cancelled" else f"run {run.id} is already cancelled"
        )
    if run.cancel_at is not None:
        return
    runs.change(connection, run.id, cancel_by=caller.name, cancel_at=now)
    if state == RunState.QUEUED:
        ending = Ending(state=RunState.CANCELLED, reason=Reason.USER, detail=f"by {caller.name}, before it started")
        settle.finish_run(connection, now, run, ending, run.attempt)
    else:
        settle.add_event(connection, now, run.id, run.attempt, "cancel", f"{caller.name} asked to cancel it")


def stop_early(connection: Connection, now: float, run: AnyRow, sweep: str, detail: str) -> list[int]:
    """As `cancel`, by early stopping of a sweep. Has no effect on a run that has ended or was cancelled. Returns the
    runs that changed."""
    if RunState(run.state) in FINAL or run.cancel_at is not None:
        return []
    runs.change(connection, run.id, cancel_by=sweep, cancel_at=now, stop_detail=detail)
    if run.state == RunState.QUEUED:
        ending = Ending(state=RunState.CANCELLED, reason=Reason.EARLY_STOP, detail=f"{detail}; before it started")
        return settle.finish_run(connection, now, run, ending, run.attempt)
    settle.add_event(connection, now, run.id, run.attempt, "cancel", detail)
    return [run.id]


def ask_outputs(connection: Connection, run: AnyRow) -> int:
    """The number of the request for the current outputs; 0 when no agent has the run."""
    if RunState(run.state) not in (RunState.STARTING, RunState.RUNNING):
        return 0
    row = attempts.get(connection, run.id, run.attempt)
    assert row is not None, "a run that somebody has has an attempt"
    attempts.change(connection, run.id, run.attempt, asked=row.asked + 1)
    return int(row.asked) + 1


def retry(connection: Connection, now: float, caller: Caller, run: AnyRow, how: str = checkpoints.RETRY) -> None:
    """Queue it again: the same run, another attempt. `how`: whether it continues from its checkpoint."""
    if RunState(run.state) not in FINAL:
        raise errors.Conflict(f"run {run.id} is {run.state}", f"cancel it first with `runyard cancel {run.id}`")
    if run.wanted_site and site_rows.site(connection, run.wanted_site) is None:
        fix = f"start it elsewhere: `runyard rerun {run.id} --site NAME`"
        raise errors.Conflict(f"run {run.id} is for the site {run.wanted_site!r}, which is no more", fix)
    if how == checkpoints.RESUME:
        checkpoints.demand(connection, run)
    obstacles = dependency_gates.obstacles(connection, run.id)
    bad = dependencies.hopeless(obstacles)
    if bad is not None:
        told = dependencies.no_more(bad.parent_id, bad.state)
        raise errors.Conflict(told, f"retry that one first: `runyard retry {bad.parent_id}`")
    ahead = dependencies.still_open(obstacles)
    shut = {row.gate_id for row in ahead}
    dependency_gates.shut_for(connection, run.id, shut)
    runs.change(
        connection, run.id, state=RunState.QUEUED, reason=None, detail=dependencies.waits_for_all(ahead),
        exit_code=None, blocked=len(shut), failures=0, queued_at=now, started_at=None, ended_at=None, cancel_by=None,
        cancel_at=None, stop_detail=None, record=None, granted=None, node=None,
    )  # fmt: skip
    dependencies.wait_again(connection, run.id)
    if how == checkpoints.AFRESH:
        checkpoints.set_aside(connection, now, run)
    asked = _ASKED.get(how, "asked to try it again")
    settle.add_event(connection, now, run.id, run.attempt, "retried", f"{caller.name} {asked}")
