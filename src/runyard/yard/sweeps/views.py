"""Sweeps, their trials and their decisions as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from runyard.model.metrics import step_of, to_json
from runyard.model.states import FINAL, Reason, RunState
from runyard.model.sweep.objective import Goal, Objective
from runyard.model.sweep.statistics import Estimate
from runyard.store import cursors, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.sweeps import lookup, submission, trial_results
from runyard.yard.views import iso

STOPPED = "early_stop"  # in counts: a result, not a cancellation by a user


def sweep_view(connection: Connection, row: AnyRow) -> dict[str, Any]:
    sweep = lookup.parse(row.document)
    counts = _counts(connection, row.id)
    open_trials = sweeps.open_trials(connection, row.id)
    return {
        "id": row.id,
        "name": row.name,
        "project": row.project,
        "owner": row.owner,
        "state": _state(connection, row, counts),
        "detail": row.detail,
        "method": sweep.method.value,
        "objective": sweep.objective.to_json() if sweep.objective else None,
        "stop": sweep.stop.to_json() if sweep.stop else None,
        "reps": sweep.reps,
        "seed": sweep.seed,
        "parallel": sweep.parallel,
        "trials": {"planned": row.planned, "made": row.made, "ended": row.made - open_trials},
        "runs": counts,
        "steps": _steps(connection, row.id, sweep.objective) if sweep.stop and sweep.objective else None,
        "best": _best(connection, row, sweep.objective) if sweep.objective else None,
        "created_at": iso(row.created_at),
        "changed_at": iso(row.changed_at),
        "document": json.loads(row.document),
    }


def _counts(connection: Connection, sweep_id: int) -> dict[str, int]:
    found = {state.value: 0 for state in RunState} | {STOPPED: 0}
    for row in sweeps.counts(connection, sweep_id):
        found[STOPPED if row.reason == Reason.EARLY_STOP else row.state] += row.number
    return found


def _state(connection: Connection, row: AnyRow, counts: Mapping[str, int]) -> str:
    """The state of a sweep follows from its runs. It has not ended before the last of them was recorded: a client that
    waits for it finds the values of all."""
    live = sum(counts[state] for state in RunState if state not in FINAL)
    if live or row.hungry or _has_untold(connection, row.id):
        begun = any(number for state, number in counts.items() if state != RunState.QUEUED)
        return RunState.RUNNING if begun else RunState.QUEUED
    if row.cancelled_at is not None:
        return RunState.CANCELLED
    if counts[RunState.FAILED]:
        return RunState.FAILED
    return RunState.CANCELLED if counts[RunState.CANCELLED] else RunState.SUCCEEDED


def has_ended(connection: Connection, row: AnyRow) -> bool:
    return _state(connection, row, _counts(connection, row.id)) in FINAL


def _has_untold(connection: Connection, sweep_id: int) -> bool:
    cursor = cursors.get(connection, submission.CURSOR)
    return cursor is not None and sweeps.has_ends_after(connection, sweep_id, cursor.position)


def _steps(connection: Connection, sweep_id: int, objective: Objective) -> dict[str, float] | None:
    """The steps of ended runs, and the steps if each had run as long as the longest."""
    row = sweeps.steps(connection, sweep_id, objective.metric)
    return {"done": float(row.done), "full": float(row.longest * row.number)} if row.number else None


def _best(connection: Connection, row: AnyRow, objective: Objective) -> dict[str, Any] | None:
    trial = sweeps.best_trial(connection, row.id, largest=objective.goal is Goal.MAXIMIZE)
    return trial_views(connection, row, [trial])[0] if trial is not None else None


def trial_views(
    connection: Connection, row: AnyRow, trials: Sequence[AnyRow], other: Objective | None = None
) -> list[dict[str, Any]]:
    """`other`: the objective to compare by, instead of the sweep's own."""
    own = lookup.parse(row.document).objective
    objective = other or own
    places: dict[int, list[AnyRow]] = {trial.number: [] for trial in trials}
    for place in sweeps.places(connection, row.id, places):
        places[place.trial].append(place)
    every = [place for some in places.values() for place in some]
    measured = {one.run_id: one for one in trial_results.measure(connection, objective, every)} if objective else {}
    return [_trial_view(trial, places[trial.number], measured, is_own=objective == own) for trial in trials]


def _trial_view(
    trial: AnyRow, places: Sequence[AnyRow], measured: Mapping[int, trial_results.Measured], *, is_own: bool
) -> dict[str, Any]:
    made = [place for place in places if place.run_id is not None]
    found = _noted(trial) if is_own else trial_results.mean([measured[place.run_id] for place in made])
    return {
        "number": trial.number,
        "params": json.loads(trial.params),
        "state": _trial_state(places),
        "value": to_json(found.mean) if found else None,
        "low": to_json(found.low) if found else None,
        "high": to_json(found.high) if found else None,
        "n": found.n if found else 0,
        "runs": [_run_view(place, measured.get(place.run_id)) for place in made],
    }


def _noted(trial: AnyRow) -> Estimate | None:
    return None if trial.value is None else Estimate(trial.value, trial.low, trial.high, trial.n)


def _run_view(place: AnyRow, measured: trial_results.Measured | None) -> dict[str, Any]:
    shown = {"id": place.run_id, "rep": place.rep, "seed": place.seed, "index": place.position}
    value = to_json(measured.value) if measured else None
    step = step_of(measured.step) if measured else None
    return {**shown, "state": place.state, "reason": place.reason, "value": value, "step": step}


def _trial_state(places: Sequence[AnyRow]) -> str:
    """`waiting`: none of its runs is created yet; `stopped`: stopped early."""
    states = {place.state for place in places if place.state is not None}
    if not states:
        return "waiting" if places else "stopped"
    if states & {RunState.STARTING, RunState.RUNNING} or (RunState.QUEUED in states and len(states) > 1):
        return RunState.RUNNING
    if RunState.QUEUED in states:
        return RunState.QUEUED
    if any(place.reason == Reason.EARLY_STOP for place in places):
        return "stopped"
    return next(state for state in (RunState.FAILED, RunState.CANCELLED, RunState.SUCCEEDED) if state in states)


def decision_view(row: AnyRow) -> dict[str, Any]:
    shown = {"number": row.number, "at": iso(row.at), "kind": row.kind, "trial": row.trial, "run": row.run_id}
    return {**shown, "body": json.loads(row.body)}
