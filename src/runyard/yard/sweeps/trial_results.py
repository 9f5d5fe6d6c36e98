"""Results of trials: the objective's values of their runs, combined when these have ended."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard.model.metrics import step_of, to_json
from runyard.model.states import FINAL, Reason, RunState
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.model.sweep.statistics import Estimate, estimate
from runyard.store import metrics, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.sweeps.decision_log import Decision, DecisionKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The objective of one run."""

    run_id: int
    rep: int
    state: str
    reason: str | None
    value: float | None  # None: not reported, or not a number
    step: float | None
    why: str = ""  # there is no value

    def to_json(self) -> dict[str, Any]:
        shown = {"run": self.run_id, "rep": self.rep, "state": self.state, "reason": self.reason}
        return {**shown, "value": to_json(self.value), "step": step_of(self.step)}

    @property
    def is_result(self) -> bool:
        return self.state == RunState.SUCCEEDED and self.value is not None

    @property
    def was_stopped(self) -> bool:
        return self.reason == Reason.EARLY_STOP


def measure(connection: Connection, objective: Objective, places: Sequence[AnyRow]) -> list[Measured]:
    """Of all planned runs that have a run, in their order."""
    ids = [place.run_id for place in places if place.run_id is not None]
    reported, summaries = metrics.of_runs(connection, ids, objective.metric), metrics.summaries_of(connection, ids)
    return [
        _measured(place, objective, reported.get(place.run_id), summaries.get(place.run_id, {}))
        for place in places
        if place.run_id is not None
    ]


def _measured(place: AnyRow, objective: Objective, row: AnyRow | None, summary: dict[str, Any]) -> Measured:
    found = _reported(objective, row) if row is not None else summary.get(objective.metric)
    value = float(found) if isinstance(found, (int, float)) and not math.isnan(found) else None
    said = row is not None or objective.metric in summary
    why = f"{objective.metric} of run {place.run_id} is {'not a number' if said else 'not reported'}"
    return Measured(
        run_id=place.run_id, rep=place.rep, state=place.state, reason=place.reason, value=value, step=last_step(row),
        why="" if value is not None else why,
    )  # fmt: skip


def last_step(row: AnyRow | None) -> float | None:
    """Of a metric of a run; if it names no steps, values are counted. A summary comes after the steps, and is not one.
    None: it was not reported."""
    if row is None:
        return None
    return next(float(step) for step in (row.last_step, row.reached, row._mapping["count"]) if step is not None)


def _reported(objective: Objective, row: AnyRow) -> float | None:
    """If the metric became NaN, its best value before does not count either: such a model is useless."""
    if objective.at is At.LAST or row.last is None:
        return row.last  # type: ignore[no-any-return]
    return row.minimum if objective.goal is Goal.MINIMIZE else row.maximum  # type: ignore[no-any-return]


def tell(connection: Connection, sweep: AnyRow, objective: Objective, trials: Iterable[int]) -> list[Decision]:
    """Store the values of trials with ended runs; add decisions for trials whose runs have all ended."""
    told: list[Decision] = []
    by_trial: dict[int, list[AnyRow]] = {}
    for place in sweeps.places(connection, sweep.id, trials):
        by_trial.setdefault(place.trial, []).append(place)
    stops = sweeps.stops(connection, sweep.id, by_trial)
    for trial, places in by_trial.items():
        measured = measure(connection, objective, places)
        _note(connection, sweep, trial, measured)
        if len(measured) == len(places) and all(RunState(one.state) in FINAL for one in measured):
            told.append(Decision(kind=DecisionKind.TELL, trial=trial, body=_outcome(measured, stops.get(trial))))
    return told


def note_again(connection: Connection, sweep: AnyRow, objective: Objective | None) -> None:
    """Compute the values of all trials again: the sweep has a new objective since their runs ended."""
    places = sweeps.places(connection, sweep.id)
    by_trial: dict[int, list[Measured]] = {place.trial: [] for place in places}
    trials = {place.run_id: place.trial for place in places}
    for one in measure(connection, objective, places) if objective else ():
        by_trial[trials[one.run_id]].append(one)
    sweeps.change(connection, sweep.id, detail=None)
    for trial, measured in by_trial.items():
        _note(connection, sweep, trial, measured)


def _note(connection: Connection, sweep: AnyRow, trial: int, measured: Sequence[Measured]) -> None:
    found = mean(measured)
    values: dict[str, Any] = {"value": None, "low": None, "high": None, "n": 0}
    if found is not None:
        values = {"value": found.mean, "low": found.low, "high": found.high, "n": found.n}
    sweeps.change_trial(connection, sweep.id, trial, **values)
    missing = [one for one in measured if one.state == RunState.SUCCEEDED and one.value is None]
    if missing:
        sweeps.change(connection, sweep.id, detail=f"trial {trial} has no result: {missing[-1].why}")


def mean(measured: Sequence[Measured]) -> Estimate | None:
    """The mean of succeeded runs; infinities of both signs have none."""
    found = estimate([one.value for one in measured if one.is_result and one.value is not None])
    return None if found is None or math.isnan(found.mean) else found


def _outcome(measured: Sequence[Measured], stop: AnyRow | None) -> dict[str, Any]:
    """complete: the mean of succeeded runs; stopped: the value at the rung that stopped it, because how much further
    its runs came until they were stopped is chance; failed: all else."""
    rows = [one.to_json() for one in measured]
    found = mean(measured)
    if found is not None:
        numbers = {"value": to_json(found.mean), "low": to_json(found.low), "high": to_json(found.high), "n": found.n}
        return {"state": "complete", **numbers, "rows": rows}
    stopped = sum(one.was_stopped for one in measured)
    if stop is not None and stopped:
        judged = json.loads(stop.body)
        return {"state": "stopped", "value": judged["value"], "step": judged["step"], "n": stopped, "rows": rows}
    why = next((one.why for one in measured if one.why), "its runs have not succeeded")
    return {"state": "failed", "value": None, "n": 0, "why": why, "rows": rows}
