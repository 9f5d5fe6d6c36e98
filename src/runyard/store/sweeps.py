"""Rows of sweeps: their trials, planned runs and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from runyard.model.states import FINAL, RunState
from runyard.store.rows import AnyRow, portions
from runyard.store.tables import decisions, events, metrics, runs, sweep_runs, sweeps, trials

_INSERT_TRIALS, _INSERT_PLACES, _INSERT_DECISIONS = map(insert, (trials, sweep_runs, decisions))
_LIVE = runs.c.state.not_in(sorted(FINAL))
_OF_RUN = select(sweep_runs).where(sweep_runs.c.run_id == bindparam("run"))
_PLACES = (
    select(sweep_runs, runs.c.state, runs.c.reason, runs.c.attempt)
    .outerjoin(runs, runs.c.id == sweep_runs.c.run_id)
    .order_by(sweep_runs.c.trial, sweep_runs.c.rep)
)
_SET_RUN = (
    update(sweep_runs)
    .where(sweep_runs.c.sweep_id == bindparam("sweep_key"), sweep_runs.c.position == bindparam("position_key"))
    .values(run_id=bindparam("new_run"))
)
_ENDS = (
    select(events.c.id, events.c.run_id, events.c.attempt, sweep_runs.c.sweep_id, sweep_runs.c.trial)
    .join(sweep_runs, sweep_runs.c.run_id == events.c.run_id)
    .where(events.c.id > bindparam("after"), events.c.id <= bindparam("newest"), events.c.kind.in_(sorted(FINAL)))
    .order_by(events.c.id)
)


# --- sweeps -----------------------------------------------------------------------------------------------------------


def add(connection: Connection, **values: Any) -> None:
    connection.execute(insert(sweeps).values(**values))


def get(connection: Connection, sweep_id: int) -> AnyRow | None:
    return connection.execute(select(sweeps).where(sweeps.c.id == sweep_id)).first()


def get_many(connection: Connection, ids: Iterable[int]) -> list[AnyRow]:
    return list(connection.execute(select(sweeps).where(sweeps.c.id.in_(sorted(ids))).order_by(sweeps.c.id)).all())


def newest_like(connection: Connection, owner: str, project: str, identity: str) -> AnyRow | None:
    query = select(sweeps).where(
        sweeps.c.owner == owner, sweeps.c.project == project, sweeps.c.identity == identity
    )  # fmt: skip
    return connection.execute(query.order_by(sweeps.c.id.desc()).limit(1)).first()


def change(connection: Connection, sweep_id: int, **values: Any) -> None:
    connection.execute(update(sweeps).where(sweeps.c.id == sweep_id).values(**values))


def hungry(connection: Connection) -> list[AnyRow]:
    """Those that still have trials or runs to create."""
    return list(connection.execute(select(sweeps).where(sweeps.c.hungry == 1).order_by(sweeps.c.id)).all())


def list_page(
    connection: Connection, *, project: str | None = None, owner: str | None = None, name: str | None = None,
    before: int | None = None, limit: int = 50,
) -> list[AnyRow]:  # fmt: skip
    """Newest first."""
    query = select(sweeps).order_by(sweeps.c.id.desc()).limit(limit)
    for column, wanted in ((sweeps.c.project, project), (sweeps.c.owner, owner), (sweeps.c.name, name)):
        query = query if wanted is None else query.where(column == wanted)
    return list(connection.execute(query if before is None else query.where(sweeps.c.id < before)).all())


def names(connection: Connection, limit: int) -> list[str]:
    """Of the newest sweeps that have one, each once."""
    query = select(sweeps.c.name).where(sweeps.c.name != "").order_by(sweeps.c.id.desc()).limit(limit)
    return list(dict.fromkeys(connection.execute(query).scalars()))


# --- trials -----------------------------------------------------------------------------------------------------------


def add_trials(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERT_TRIALS, rows)


def trials_of(connection: Connection, sweep_id: int, after: int = 0, limit: int | None = None) -> list[AnyRow]:
    query = select(trials).where(trials.c.sweep_id == sweep_id, trials.c.number > after)
    return list(connection.execute(query.order_by(trials.c.number).limit(limit)).all())


def trial(connection: Connection, sweep_id: int, number: int) -> AnyRow:
    return connection.execute(select(trials).where(_one(sweep_id, number))).one()


def change_trial(connection: Connection, sweep_id: int, number: int, **values: Any) -> None:
    connection.execute(update(trials).where(_one(sweep_id, number)).values(**values))


def best_trial(connection: Connection, sweep_id: int, *, largest: bool) -> AnyRow | None:
    order = trials.c.value.desc() if largest else trials.c.value
    query = select(trials).where(trials.c.sweep_id == sweep_id, trials.c.value.is_not(None))
    return connection.execute(query.order_by(order, trials.c.number).limit(1)).first()


def _one(sweep_id: int, number: int) -> Any:
    return (trials.c.sweep_id == sweep_id) & (trials.c.number == number)


# --- places of runs ---------------------------------------------------------------------------------------------------


def add_places(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERT_PLACES, rows)


def places(connection: Connection, sweep_id: int, trial_numbers: Iterable[int] | None = None) -> list[AnyRow]:
    """With `state`, `reason` and `attempt` of their runs, which are NULL if there is no run; by trial and rep."""
    query = _PLACES.where(sweep_runs.c.sweep_id == sweep_id)
    if trial_numbers is None:
        return list(connection.execute(query).all())
    found: list[AnyRow] = []
    for some in portions(sorted(trial_numbers)):
        found += connection.execute(query.where(sweep_runs.c.trial.in_(some)))
    return found


def place_of(connection: Connection, run_id: int) -> AnyRow | None:
    return connection.execute(_OF_RUN, {"run": run_id}).first()


def places_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, AnyRow]:
    found: dict[int, AnyRow] = {}
    for some in portions(run_ids):
        query = select(sweep_runs).where(sweep_runs.c.run_id.in_(some))
        found.update({row.run_id: row for row in connection.execute(query)})
    return found


def unmade(connection: Connection, sweep_id: int, limit: int | None) -> list[AnyRow]:
    """Planned runs without a run, in their order, each with the parameters of its trial."""
    query = (
        select(sweep_runs, trials.c.params)
        .join(trials, (trials.c.sweep_id == sweep_runs.c.sweep_id) & (trials.c.number == sweep_runs.c.trial))
        .where(sweep_runs.c.sweep_id == sweep_id, sweep_runs.c.run_id.is_(None))
    )
    return list(connection.execute(query.order_by(sweep_runs.c.position).limit(limit)).all())


def set_runs(connection: Connection, sweep_id: int, run_ids: Sequence[tuple[int, int | None]]) -> None:
    """Set the runs of planned runs: (position, run), or None if it has none any more."""
    if run_ids:
        rows = [{"sweep_key": sweep_id, "position_key": place, "new_run": run} for place, run in run_ids]
        connection.execute(_SET_RUN, rows)


def forget_unmade(connection: Connection, sweep_id: int, trial_number: int) -> None:
    """Delete the planned runs of a trial that have no run yet."""
    connection.execute(
        delete(sweep_runs).where(
            sweep_runs.c.sweep_id == sweep_id, sweep_runs.c.trial == trial_number, sweep_runs.c.run_id.is_(None)
        )
    )


def live(connection: Connection, sweep_id: int) -> int:
    query = select(func.count()).select_from(sweep_runs).join(runs, runs.c.id == sweep_runs.c.run_id)
    return int(connection.execute(query.where(sweep_runs.c.sweep_id == sweep_id, _LIVE)).scalar() or 0)


def counts(connection: Connection, sweep_id: int) -> list[AnyRow]:
    """Runs by `state` and `reason`, with their `number`."""
    query = (
        select(runs.c.state, runs.c.reason, func.count().label("number"))
        .join(sweep_runs, sweep_runs.c.run_id == runs.c.id)
        .where(sweep_runs.c.sweep_id == sweep_id)
        .group_by(runs.c.state, runs.c.reason)
    )
    return list(connection.execute(query).all())


def open_trials(connection: Connection, sweep_id: int) -> int:
    """Trials with runs that have not ended."""
    query = (
        select(func.count(func.distinct(sweep_runs.c.trial)))
        .outerjoin(runs, runs.c.id == sweep_runs.c.run_id)
        .where(sweep_runs.c.sweep_id == sweep_id, sweep_runs.c.run_id.is_(None) | _LIVE)
    )
    return int(connection.execute(query).scalar() or 0)


def steps(connection: Connection, sweep_id: int, metric: str) -> AnyRow:
    """Steps of ended runs: `done` in all, the `longest`, and the `number` of them."""
    reached = func.coalesce(metrics.c.reached, metrics.c.count)
    query = (
        select(func.sum(reached).label("done"), func.max(reached).label("longest"), func.count().label("number"))
        .join(sweep_runs, sweep_runs.c.run_id == metrics.c.run_id)
        .join(runs, runs.c.id == metrics.c.run_id)
        .where(sweep_runs.c.sweep_id == sweep_id, metrics.c.name == metric)
        .where(runs.c.state.in_([RunState.SUCCEEDED, RunState.CANCELLED]))
    )
    return connection.execute(query).one()


# --- decisions --------------------------------------------------------------------------------------------------------


def add_decisions(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERT_DECISIONS, rows)


def decisions_after(connection: Connection, sweep_id: int, after: int, limit: int | None = None) -> list[AnyRow]:
    query = select(decisions).where(decisions.c.sweep_id == sweep_id, decisions.c.number > after)
    return list(connection.execute(query.order_by(decisions.c.number).limit(limit)).all())


def stops(connection: Connection, sweep_id: int, trials: Iterable[int]) -> dict[int, AnyRow]:
    """The decisions by which trials were stopped, by trial."""
    found: dict[int, AnyRow] = {}
    of_sweep = (decisions.c.sweep_id == sweep_id, decisions.c.kind == "stop")
    for some in portions(sorted(trials)):
        query = select(decisions).where(*of_sweep, decisions.c.trial.in_(some))
        found.update({row.trial: row for row in connection.execute(query)})
    return found


def ends_after(connection: Connection, after: int, newest: int, limit: int) -> list[AnyRow]:
    """Events of runs of sweeps that have ended: `id`, `run_id`, `attempt`, `sweep_id`, `trial`; oldest first."""
    return list(connection.execute(_ENDS.limit(limit), {"after": after, "newest": newest}).all())


def has_ends_after(connection: Connection, sweep_id: int, after: int) -> bool:
    """Whether a run of it has ended since that event."""
    ended = select(events.c.id).where(
        events.c.run_id == sweep_runs.c.run_id, events.c.id > after, events.c.kind.in_(sorted(FINAL))
    )
    query = select(sweep_runs.c.position).where(sweep_runs.c.sweep_id == sweep_id, ended.exists()).limit(1)
    return connection.execute(query).first() is not None
