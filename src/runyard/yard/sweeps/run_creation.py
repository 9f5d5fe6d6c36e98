"""Create runs of a sweep, as many as its `parallel` limit allows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection

from runyard.model.roles import Caller
from runyard.model.spec import RunSpec
from runyard.model.states import FINAL, Reason, RunState
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.runs import Place, run_spec
from runyard.store import runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.runs import actions, submit
from runyard.yard.runs.submit import Submitter
from runyard.yard.sweeps import lookup


def room(connection: Connection, sweep_id: int, sweep: SweepSpec) -> int | None:
    """How many more runs may exist now; None: any number."""
    return None if sweep.parallel is None else max(0, sweep.parallel - sweeps.live(connection, sweep_id))


def make_runs(connection: Connection, now: float, sweep_id: int) -> list[int]:
    """For planned runs without a run, in their order; returns the new runs."""
    row = lookup.find(connection, sweep_id)
    sweep = lookup.parse(row.document)
    made = []
    if row.cancelled_at is None:
        places = sweeps.unmade(connection, sweep_id, room(connection, sweep_id, sweep))
        specs = [_spec(sweep, place, json.loads(place.params)) for place in places]
        made = _submit(connection, now, row, places, specs)
    sweeps.change(connection, sweep_id, hungry=int(row.cancelled_at is None and _is_hungry(connection, row, sweep)))
    return made


def _is_hungry(connection: Connection, row: AnyRow, sweep: SweepSpec) -> bool:
    is_searching = sweep.method.learns and row.made < row.planned
    return is_searching or bool(sweeps.unmade(connection, row.id, 1))


def is_dead(place: AnyRow) -> bool:
    """Ended without a result; a run that was stopped early has one."""
    if place.state is None or RunState(place.state) not in FINAL or place.state == RunState.SUCCEEDED:
        return False
    return bool(place.reason != Reason.EARLY_STOP)


def start_again(
    connection: Connection, now: float, caller: Caller, row: AnyRow, sweep: SweepSpec, dead: Sequence[AnyRow]
) -> None:
    """Retry the same runs; if the document has changed, replace them with new ones. Those beyond the limit get a new
    one later."""
    free = room(connection, row.id, sweep)
    first, later = (dead, []) if free is None else (dead[:free], dead[free:])
    sweeps.set_runs(connection, row.id, [(place.position, None) for place in later])
    params = {trial.number: json.loads(trial.params) for trial in sweeps.trials_of(connection, row.id)} if first else {}
    old = {run.id: run for run in runs.get_many(connection, [place.run_id for place in first])}
    changed, specs = list[AnyRow](), list[RunSpec]()
    for place in first:
        spec, run = _spec(sweep, place, params[place.trial]), old[place.run_id]
        if json.loads(run.spec) == json.loads(json.dumps(spec.to_json())):
            actions.retry(connection, now, caller, run)
        else:
            changed.append(place)
            specs.append(spec)
    _submit(connection, now, row, changed, specs)


def _spec(sweep: SweepSpec, place: AnyRow, params: dict[str, object]) -> RunSpec:
    where = Place(sweep=place.sweep_id, trial=place.trial, rep=place.rep, index=place.position, seed=place.seed)
    return run_spec(sweep, where, params)


def _submit(
    connection: Connection, now: float, row: AnyRow, places: Sequence[AnyRow], specs: Sequence[RunSpec]
) -> list[int]:
    if not specs:
        return []
    made = [run.id for run in submit.submit(connection, now, Submitter(owner=row.owner), specs)]
    sweeps.set_runs(connection, row.id, list(zip((place.position for place in places), made, strict=True)))
    return made
