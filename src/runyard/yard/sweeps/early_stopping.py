"""Metrics of running runs of a sweep: rungs that they reach, and the trials that are stopped there.

In the transaction that stores the values, so that each is compared exactly once, also across crashes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from runyard.model.metrics import Point
from runyard.model.states import FINAL, RunState
from runyard.model.sweep import SweepSpec
from runyard.store import metrics, runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.runs import actions
from runyard.yard.sweeps import decision_log, rungs, trial_results
from runyard.yard.sweeps.decision_log import Decision, History
from runyard.yard.sweeps.rungs import Reached, Standing


def objective_points(sweep: SweepSpec, points: Sequence[Point]) -> list[Point]:
    """The metrics that a rule compares."""
    if sweep.stop is None or sweep.objective is None:
        return []
    return [point for point in points if point.name == sweep.objective.metric]


def observe(
    connection: Connection, now: float, row: AnyRow, sweep: SweepSpec, history: History, place: AnyRow,
    points: Sequence[Point],
) -> list[int]:  # fmt: skip
    """Record the rungs that a run has reached, and stop its trial if it is worse than others were there. `points`: of
    the objective. Returns the runs that changed."""
    assert sweep.stop is not None and sweep.objective is not None
    metric = sweep.objective.metric
    kept = metrics.named(connection, place.run_id, [metric]).get(metric)
    steps = _steps(points, kept)
    places = sweeps.places(connection, row.id, [place.trial])
    for found in rungs.reached(sweep.stop, history.heights.get(place.run_id, -1), steps):
        standing = _standing(history, place, places, found, steps[-1][0])
        seen = rungs.rung(place.trial, place.run_id, metric, found, standing)
        history = history.with_tail([seen])
        stop = rungs.judge(row.id, sweep.stop, sweep.objective, history, seen)
        number = decision_log.append(connection, now, row, [seen, stop] if stop else [seen])
        if stop is not None:
            sweeps.change_trial(connection, row.id, stop.trial, stopped=number)
            sweeps.forget_unmade(connection, row.id, stop.trial)
            return _stop(connection, now, row.id, sweep, history, stop, places)
    return []


def is_live(place: AnyRow) -> bool:
    return place.state is not None and RunState(place.state) not in FINAL


def _steps(points: Sequence[Point], kept: AnyRow | None) -> list[tuple[float, float]]:
    """`kept`: what the run has reported of it with these; None where it has too many names."""
    if kept is None:
        return rungs.numbered(points, len(points), has_steps=any(point.step is not None for point in points))
    return rungs.numbered(points, kept._mapping["count"], has_steps=kept.reached is not None)


def _standing(
    history: History, place: AnyRow, places: Sequence[AnyRow], found: Reached, newest: float
) -> Standing:  # fmt: skip
    awaited = sum(_may_come(history, each, found.rung) for each in places if each.run_id != place.run_id)
    return Standing(newest=newest, awaited=awaited, over=not any(map(is_live, places)))


def _may_come(history: History, place: AnyRow, rung: int) -> bool:
    """Also one that is not created yet; not one that has reached the rung or skipped it."""
    return place.run_id is None or (is_live(place) and history.heights.get(place.run_id, -1) < rung)


def _stop(
    connection: Connection, now: float, sweep_id: int, sweep: SweepSpec, history: History, stop: Decision,
    places: Sequence[AnyRow],
) -> list[int]:  # fmt: skip
    """All runs of the trial, except those that are finishing by themselves."""
    assert sweep.stop is not None and sweep.objective is not None
    live = [place.run_id for place in places if is_live(place)]
    reported, moved = metrics.of_runs(connection, live, sweep.objective.metric), list[int]()
    for run in runs.get_many(connection, live):
        if not rungs.is_through(sweep.stop, history, trial_results.last_step(reported.get(run.id))):
            moved += actions.stop_early(connection, now, run, f"sweep S{sweep_id}", str(stop.body["detail"]))
    return moved
