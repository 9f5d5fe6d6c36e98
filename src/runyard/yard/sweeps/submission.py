"""Submit a sweep: a new one, or the missing runs of an existing one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.model.declaration import Makes, names
from runyard.model.roles import Caller
from runyard.model.spec import RunSpec
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.seeds import seed_of
from runyard.model.sweep.space import Params, identity
from runyard.store import counters, cursors, runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.sweeps import lookup, run_creation, trial_results

PROGRAM = names(RunSpec, lambda one: one.makes is not Makes.NOTHING)  # what makes results
_OF_RECORD = ("python", "freeze", "conda")  # versions and packages, and not where they were
CURSOR = "sweeps"  # how far ends of runs were taken note of


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The effect of a submit on the runs of a sweep."""

    created: int  # runs that are made now, or when there is room for them
    reused: int  # that live, or have a result
    retried: int  # that had failed or were cancelled
    differs: list[str]  # fields in which those that are reused differ from what the document says now

    def to_json(self) -> dict[str, Any]:
        return {"created": self.created, "reused": self.reused, "retried": self.retried, "differs": self.differs}


def submit(
    connection: Connection, now: float, caller: Caller, sweep: SweepSpec, listed: Sequence[Params]
) -> tuple[int, Change]:
    """`listed`: all configurations, if the method does not use results."""
    cursors.begin(connection, CURSOR, now)
    known = _known(connection, caller, sweep)
    row = _renew(connection, now, known, sweep) if known else _begin(connection, now, caller.name, sweep)
    numbers = _trials(connection, row, sweep, listed)
    created = add_places(connection, row.id, sweep, numbers) + _searched(sweep, row.made)
    alive, dead = _divided(sweeps.places(connection, row.id) if row.places else [], sweep, numbers)
    differs = _differences(connection, sweep.run, [place.run_id for place in alive])
    run_creation.start_again(connection, now, caller, row, sweep, dead)
    run_creation.make_runs(connection, now, row.id)
    return row.id, Change(created=created, reused=len(alive), retried=len(dead), differs=differs)


def plan(
    connection: Connection, caller: Caller, sweep: SweepSpec, listed: Sequence[Params]
) -> tuple[int | None, Change]:  # fmt: skip
    """What `submit` would do, to which sweep; None: to a new one."""
    known = _known(connection, caller, sweep)
    trials = sweeps.trials_of(connection, known.id) if known else []
    places = sweeps.places(connection, known.id) if known else []
    numbers, fresh = _wanted(trials, sweep, listed)
    created = len(_missing(places, sweep, numbers)) + sweep.reps * len(fresh) + _searched(sweep, len(trials))
    alive, dead = _divided(places, sweep, numbers)
    differs = _differences(connection, sweep.run, [place.run_id for place in alive])
    change = Change(created=created, reused=len(alive), retried=len(dead), differs=differs)
    return known.id if known else None, change


def _known(connection: Connection, caller: Caller, sweep: SweepSpec) -> AnyRow | None:
    """The existing sweep, if there is one."""
    if sweep.fresh:
        return None
    known = sweeps.newest_like(connection, caller.name, sweep.run.project, _identity(sweep))
    if known is not None:
        _check_same_search(known, sweep)
    return known


def _identity(sweep: SweepSpec) -> str:
    return f"name:{sweep.name}" if sweep.name else f"digest:{sweep.digest}"


def _check_same_search(known: AnyRow, sweep: SweepSpec) -> None:
    old = lookup.parse(known.document)
    changed = next((name for name in _fixed(old, sweep) if sweep.search[name] != old.search[name]), None)
    if changed is None:
        return
    raise errors.Conflict(
        f"sweep S{known.id} is called {sweep.name!r} and has another {changed}: what it has learned would not hold",
        "give the new one another name, or hand it in with fresh",
    )


def _fixed(old: SweepSpec, sweep: SweepSpec) -> Iterable[str]:
    """The inputs of decisions: of a search all of it, of early stopping the rule and the objective."""
    if sweep.method.learns or old.method.learns:
        return sweep.search
    return ("objective", "stop") if old.stop is not None else ()


def _begin(connection: Connection, now: float, owner: str, sweep: SweepSpec) -> AnyRow:
    sweep_id = counters.take(connection, "sweeps")
    sweeps.add(
        connection, id=sweep_id, owner=owner, project=sweep.run.project, name=sweep.name, identity=_identity(sweep),
        document=json.dumps(sweep.to_json()), planned=_planned(sweep), made=0, places=0, decided=0, hungry=1,
        created_at=now, changed_at=now,
    )  # fmt: skip
    return lookup.find(connection, sweep_id)


def _renew(connection: Connection, now: float, known: AnyRow, sweep: SweepSpec) -> AnyRow:
    planned = max(known.planned, _planned(sweep))
    document = json.dumps(sweep.to_json())
    sweeps.change(
        connection, known.id, document=document, planned=planned, hungry=1, changed_at=now, cancelled_at=None
    )  # fmt: skip
    if sweep.objective != lookup.parse(known.document).objective:
        trial_results.note_again(connection, known, sweep.objective)
    return lookup.find(connection, known.id)


def _planned(sweep: SweepSpec) -> int:
    """Trials that will certainly be created; of other methods they are counted when they exist."""
    return (sweep.trials or 0) if sweep.method.learns else 0


def _searched(sweep: SweepSpec, made: int) -> int:
    """Runs of trials that a search will make."""
    return sweep.reps * max(0, _planned(sweep) - made)


def _trials(connection: Connection, row: AnyRow, sweep: SweepSpec, listed: Sequence[Params]) -> list[int]:
    """The trials of the document, including new ones; not those that were stopped."""
    known, fresh = _wanted(sweeps.trials_of(connection, row.id) if row.made else [], sweep, listed)
    if sweep.method.learns:
        return known
    numbers = add_trials(connection, row.id, row.made, fresh)
    sweeps.change(connection, row.id, planned=row.made + len(fresh))
    return sorted([*known, *numbers])


def _wanted(trials: Sequence[AnyRow], sweep: SweepSpec, listed: Sequence[Params]) -> tuple[list[int], list[Params]]:
    """The trials of the document, without those that were stopped, and their missing repetitions."""
    if sweep.method.learns:
        return [trial.number for trial in trials if not trial.stopped], []
    known = {identity(json.loads(trial.params)): trial for trial in trials}
    wanted = [sweep.complete(params) for params in listed]
    found = [known.get(identity(params)) for params in wanted] if known else [None] * len(wanted)
    fresh = [params for params, trial in zip(wanted, found, strict=True) if trial is None]
    return [trial.number for trial in found if trial is not None and not trial.stopped], fresh


def add_trials(connection: Connection, sweep_id: int, made: int, params: Sequence[Params]) -> list[int]:
    """`params`: of new trials, with those that all share."""
    numbers = [made + index for index in range(1, len(params) + 1)]
    sweeps.add_trials(
        connection,
        [{"sweep_id": sweep_id, "number": number, "params": json.dumps(each), "n": 0, "stopped": 0}
         for number, each in zip(numbers, params, strict=True)],
    )  # fmt: skip
    sweeps.change(connection, sweep_id, made=made + len(numbers))
    return numbers


def add_places(connection: Connection, sweep_id: int, sweep: SweepSpec, numbers: Sequence[int]) -> int:
    """For each repetition that these trials do not have; how many."""
    row = lookup.find(connection, sweep_id)
    missing = _missing(sweeps.places(connection, sweep_id) if row.places else [], sweep, numbers)
    seeds = _Seeds(connection, sweep_id, sweep)
    rows = [
        {"sweep_id": sweep_id, "position": position, "trial": trial, "rep": rep, "seed": seeds.of(trial, rep)}
        for position, (trial, rep) in enumerate(missing, row.places + 1)
    ]
    sweeps.add_places(connection, rows)
    sweeps.change(connection, sweep_id, places=row.places + len(rows))
    return len(rows)


def _missing(places: Iterable[AnyRow], sweep: SweepSpec, numbers: Sequence[int]) -> list[tuple[int, int]]:
    """(trial, repetition): first one of each trial, then the second ones; if a rule compares trials, those of one
    trial after each other, so that they reach a rung together."""
    taken = {(place.trial, place.rep) for place in places}
    missing = [(trial, rep) for rep in range(1, sweep.reps + 1) for trial in numbers if (trial, rep) not in taken]
    return missing if sweep.stop is None else sorted(missing)


class _Seeds:
    def __init__(self, connection: Connection, sweep_id: int, sweep: SweepSpec) -> None:
        self._seed = sweep.seed
        self._params: dict[int, tuple[Mapping[str, Any], int]] = {}
        seen: Counter[str] = Counter()
        for trial in sweeps.trials_of(connection, sweep_id):
            self._params[trial.number] = (json.loads(trial.params), seen[trial.params])
            seen[trial.params] += 1

    def of(self, trial: int, rep: int) -> int:
        params, again = self._params[trial]
        return seed_of(self._seed, params, rep, again)


def _divided(
    places: Sequence[AnyRow], sweep: SweepSpec, numbers: Iterable[int]
) -> tuple[list[AnyRow], list[AnyRow]]:  # fmt: skip
    """Planned runs that have a run: those that are open or have a result, and those to be started again."""
    wanted = set(numbers)
    made = [place for place in places if place.run_id is not None]
    dead = [
        place for place in made if place.trial in wanted and place.rep <= sweep.reps and run_creation.is_dead(place)
    ]
    again = {place.position for place in dead}
    return [place for place in made if place.position not in again], dead


def _differences(connection: Connection, now: RunSpec, run_ids: Iterable[int]) -> list[str]:
    """The fields in which one of these runs differs, in the order of `PROGRAM`: results of old code must not be
    mistaken for results of new code."""
    wanted = _essence(json.loads(json.dumps(now.to_json())))
    found: set[str] = set()
    for text in runs.specs(connection, run_ids):
        had = _essence(json.loads(text))
        found.update(name for name in PROGRAM if had[name] != wanted[name])
    return [name for name in PROGRAM if name in found]


def _essence(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The origin of code and packages does not matter if they are the same."""
    code, python = spec.get("code") or {}, spec.get("python_env")
    if isinstance(python, Mapping):
        record = python.get("record") or {}
        python = {**python, "record": [record.get(name) for name in _OF_RECORD]}
    return {**{name: spec.get(name) for name in PROGRAM}, "code": code.get("tree"), "python_env": python}
