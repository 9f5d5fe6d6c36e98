"""What people ask of runs that exist: cancel, retry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from runyard import errors
from runyard.model.roles import Caller
from runyard.model.states import FINAL, Reason, RunState
from runyard.store import runs
from runyard.store.rows import AnyRow
from runyard.yard import settle, submit
from runyard.yard.evidence import Ending

Outcome = dict[int, AnyRow | errors.RunyardError]


def each(
    connection: Connection, caller: Caller, ids: Sequence[int], wish: Callable[[Connection, AnyRow], None]
) -> Outcome:
    """Apply a wish to each run; one that refuses does not stop the others."""
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
    run = runs.get(connection, run_id)
    if run is None:
        raise no_run(run_id)
    if not caller.may_change(run.owner):
        raise errors.Forbidden(f"run {run_id} belongs to {run.owner}", f"ask {run.owner} or an administrator")
    return run


def no_run(run_id: int) -> errors.NotFound:
    return errors.NotFound(f"there is no run {run_id}", "list runs with `runyard ls`")


def cancel(connection: Connection, now: float, caller: Caller, run: AnyRow) -> None:
    """A run that waits ends at once; one that an agent has gets a wish, which is met when its processes are gone."""
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


def retry(connection: Connection, now: float, caller: Caller, run: AnyRow) -> None:
    """Back to the queue: the same run, another attempt."""
    if RunState(run.state) not in FINAL:
        raise errors.Conflict(f"run {run.id} is {run.state}", f"cancel it first with `runyard cancel {run.id}`")
    parents = runs.get_many(connection, runs.parents_of(connection, run.id))
    waiting = [parent.id for parent in parents if RunState(parent.state) not in FINAL]
    for parent in parents:
        if parent.state in (RunState.FAILED, RunState.CANCELLED) and not submit.may_fail(run, parent.id):
            raise errors.Conflict(
                submit.dependency_detail(parent.id, parent.state), f"retry that one first: `runyard retry {parent.id}`"
            )
    runs.change(
        connection, run.id, state=RunState.QUEUED, reason=None, detail=submit.waits_for(waiting), exit_code=None,
        blocked=len(waiting), failures=0, queued_at=now, started_at=None, ended_at=None, cancel_by=None,
        cancel_at=None, record=None, granted=None, node=None,
    )  # fmt: skip
    _wait_again(connection, run)
    settle.add_event(connection, now, run.id, run.attempt, "retried", f"{caller.name} asked to try it again")


def _wait_again(connection: Connection, run: AnyRow) -> None:
    """Runs that come after this one and have not had all their turns wait for it once more."""
    for child in runs.get_many(connection, runs.children(connection, run.id)):
        if child.state == RunState.QUEUED and child.blocked:
            runs.change(connection, child.id, blocked=child.blocked + 1)
