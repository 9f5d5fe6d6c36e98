"""Rows of runs, their tags and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from runyard.model.states import RunState
from runyard.store import bulk
from runyard.store.rows import AnyRow, portions
from runyard.store.tables import events, run_tags, runs, sweep_runs

_BY_ID = select(runs).where(runs.c.id == bindparam("id"))
_BY_IDS = select(runs).where(runs.c.id.in_(bindparam("ids", expanding=True)))
_BRIEF = select(runs.c.id, runs.c.project, runs.c.name, runs.c.attempt)
_UPDATE_CACHE: dict[tuple[str, ...], Any] = {}
_BY_KEY = select(runs.c.id, runs.c.idempotency_digest).where(
    runs.c.owner == bindparam("owner"), runs.c.idempotency_key == bindparam("key")
)


def insert_runs(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    bulk.insert_rows(connection, runs, rows)


def insert_tags(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    bulk.insert_rows(connection, run_tags, rows)


def insert_events(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    bulk.insert_rows(connection, events, rows)


def get(connection: Connection, run_id: int) -> AnyRow | None:
    return connection.execute(_BY_ID, {"id": run_id}).first()


def get_many(connection: Connection, ids: Iterable[int]) -> list[AnyRow]:
    found: list[AnyRow] = []
    for some in portions(ids):
        found += connection.execute(_BY_IDS, {"ids": some}).all()
    return found


def brief(connection: Connection, ids: Iterable[int]) -> list[AnyRow]:
    """Only their ids and names."""
    found: list[AnyRow] = []
    for some in portions(ids):
        found += connection.execute(_BRIEF.where(runs.c.id.in_(some))).all()
    return found


def specs(connection: Connection, ids: Iterable[int]) -> Iterator[str]:
    """As they are kept."""
    for some in portions(ids):
        yield from connection.execute(select(runs.c.spec).where(runs.c.id.in_(some))).scalars()


def brief_active(connection: Connection) -> list[AnyRow]:
    return list(connection.execute(_BRIEF.where(runs.c.state.in_(["starting", "running"]))).all())


def change(connection: Connection, run_id: int, **values: Any) -> None:
    change_many(connection, {run_id: values})


def change_many(connection: Connection, changes: Mapping[int, Mapping[str, Any]]) -> None:
    """Set columns, the same ones of each run. The statement for each set of columns is built once."""
    if not changes:
        return
    names = tuple(next(iter(changes.values())))
    statement = _UPDATE_CACHE.get(names)
    if statement is None:
        assignments: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
        statement = _UPDATE_CACHE[names] = update(runs).where(runs.c.id == bindparam("run_key")).values(assignments)
    connection.execute(
        statement,
        [{"run_key": run_id, **{f"new_{name}": values[name] for name in names}} for run_id, values in changes.items()],
    )


def by_idempotency_key(connection: Connection, owner: str, key: str) -> AnyRow | None:
    return connection.execute(_BY_KEY, {"owner": owner, "key": key}).first()


def list_page(
    connection: Connection,
    *,
    states: Sequence[str] = (),
    projects: Sequence[str] = (),
    owner: str | None = None,
    site: str | None = None,
    tag: str | None = None,
    name: str | None = None,
    recipe: str | None = None,
    sweep: int | None = None,
    ids: Sequence[int] = (),
    before: int | None = None,
    limit: int = 50,
) -> list[AnyRow]:
    """Newest first, by key: a page costs the same wherever it is."""
    query = select(runs).order_by(runs.c.id.desc()).limit(limit)
    if states:
        query = query.where(runs.c.state.in_(states)) if len(states) > 1 else query.where(runs.c.state == states[0])
    if projects:
        query = (
            query.where(runs.c.project.in_(projects))
            if len(projects) > 1
            else query.where(runs.c.project == projects[0])
        )
    if owner is not None:
        query = query.where(runs.c.owner == owner)
    if site is not None:
        query = query.where(func.coalesce(runs.c.site, runs.c.wanted_site) == site)
    if tag is not None:
        query = query.join(run_tags, run_tags.c.run_id == runs.c.id).where(run_tags.c.tag == tag)
    if name is not None:
        query = query.where(runs.c.name == name)
    if recipe is not None:
        query = query.where(runs.c.recipe == recipe)
    if sweep is not None:
        query = query.join(sweep_runs, sweep_runs.c.run_id == runs.c.id).where(sweep_runs.c.sweep_id == sweep)
    if ids:
        query = query.where(runs.c.id.in_(ids))
    if before is not None:
        query = query.where(runs.c.id < before)
    return list(connection.execute(query).all())


def tags_of(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    if ids:
        query = select(run_tags).where(run_tags.c.run_id.in_(ids)).order_by(run_tags.c.tag)
        for row in connection.execute(query):
            found.setdefault(row.run_id, []).append(row.tag)
    return found


def states(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    query = select(runs.c.id, runs.c.state).where(runs.c.id.in_(ids))
    return {row.id: row.state for row in connection.execute(query)}


def newest_of(connection: Connection, owner: str) -> int | None:
    query = select(runs.c.id).where(runs.c.owner == owner).order_by(runs.c.id.desc()).limit(1)
    return connection.execute(query).scalar()


def counts(connection: Connection) -> dict[str, int]:
    found = {state.value: 0 for state in RunState}
    query = select(runs.c.state, func.count()).group_by(runs.c.state)
    found.update({state: number for state, number in connection.execute(query)})
    return found


def event_page(connection: Connection, run_id: int, after: int, limit: int) -> list[AnyRow]:
    query = select(events).where(events.c.run_id == run_id, events.c.id > after).order_by(events.c.id).limit(limit)
    return list(connection.execute(query).all())


def newest_event(connection: Connection) -> int:
    return int(connection.execute(select(func.max(events.c.id))).scalar() or 0)


def events_since(connection: Connection, seen: int, limit: int) -> list[AnyRow]:
    """Runs with events after that event, and these events; oldest first."""
    query = select(events.c.id, events.c.run_id, events.c.kind).where(events.c.id > seen)
    return list(connection.execute(query.order_by(events.c.id).limit(limit)).all())
