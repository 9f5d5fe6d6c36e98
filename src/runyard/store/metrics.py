"""Rows of metrics: one for each name, the read position in each attempt's file, and summaries.

A column of values has NULL for NaN, because SQLite cannot store NaN.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey
from runyard.store.rows import AnyRow, portions
from runyard.store.tables import attempts, metric_positions, metrics, summaries

_CHANGED = ("count", "last", "minimum", "maximum", "last_step", "last_at", "attempt", "reached", "known")
_INSERT, _INSERT_POSITION = insert(metrics), insert(metric_positions)
_UPDATE = (
    update(metrics)
    .where(metrics.c.run_id == bindparam("run_key"), metrics.c.name == bindparam("name_key"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGED})
)
_POSITION = (metric_positions.c.run_id == bindparam("run_key"), metric_positions.c.attempt == bindparam("attempt_key"))
_GET_POSITION = select(metric_positions).where(*_POSITION)
_ADVANCE = (
    update(metric_positions)
    .where(*_POSITION, metric_positions.c.position == bindparam("old"), metric_positions.c.is_open == 1)
    .values(position=bindparam("new"), is_open=bindparam("new_open"))
)
_OPEN = (
    select(metric_positions, attempts.c.state)
    .join(
        attempts,
        (attempts.c.run_id == metric_positions.c.run_id) & (attempts.c.number == metric_positions.c.attempt),
    )
    .where(metric_positions.c.is_open == 1)
    .order_by(metric_positions.c.run_id, metric_positions.c.attempt)
)


def expect(connection: Connection, key: AttemptKey) -> None:
    """From now on the attempt's file is read, until its end."""
    if connection.execute(_GET_POSITION, _of(key)).first() is None:
        row = {"run_id": key.run, "attempt": key.attempt, "position": 0, "is_open": 1, "dropped": 0}
        connection.execute(_INSERT_POSITION, row)


def open_positions(connection: Connection) -> list[AnyRow]:
    """Of all attempts that may have more to read, each with the attempt's state."""
    return list(connection.execute(_OPEN).all())


def unread_of(connection: Connection, run_id: int) -> list[int]:
    """Attempts of a run that have ended, and of which something may not be read yet."""
    query = _OPEN.where(metric_positions.c.run_id == run_id, attempts.c.state == AttemptState.ENDED)
    return [row.attempt for row in connection.execute(query)]


def advance(connection: Connection, key: AttemptKey, old: int, new: int, *, is_open: bool) -> bool:
    """False if another server has moved it."""
    values = {**_of(key), "old": old, "new": new, "new_open": int(is_open)}
    return connection.execute(_ADVANCE, values).rowcount == 1


def drop(connection: Connection, key: AttemptKey, number: int) -> bool:
    """Count values that are not stored; True for the first ones of a run."""
    of_run = metric_positions.c.run_id == key.run
    before = connection.execute(select(func.sum(metric_positions.c.dropped)).where(of_run)).scalar() or 0
    change = update(metric_positions).where(*_POSITION).values(dropped=metric_positions.c.dropped + number)
    connection.execute(change, _of(key))
    return not before


def of_run(connection: Connection, run_id: int) -> list[AnyRow]:
    """By name."""
    rows = connection.execute(select(metrics).where(metrics.c.run_id == run_id)).all()
    return sorted(rows, key=lambda row: row.name)  # databases do not agree on what comes first


def named(connection: Connection, run_id: int, names: Collection[str]) -> dict[str, AnyRow]:
    found: dict[str, AnyRow] = {}
    for some in portions(sorted(names)):
        query = select(metrics).where(metrics.c.run_id == run_id, metrics.c.name.in_(some))
        found.update({row.name: row for row in connection.execute(query)})
    return found


def of_runs(connection: Connection, run_ids: Iterable[int], name: str) -> dict[int, AnyRow]:
    """One metric of many runs."""
    found: dict[int, AnyRow] = {}
    for some in portions(sorted(run_ids)):
        query = select(metrics).where(metrics.c.run_id.in_(some), metrics.c.name == name)
        found.update({row.run_id: row for row in connection.execute(query)})
    return found


def count_names(connection: Connection, run_id: int) -> int:
    query = select(func.count()).select_from(metrics).where(metrics.c.run_id == run_id)
    return int(connection.execute(query).scalar() or 0)


def add(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERT, rows)


def change(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Complete rows, replacing the existing ones."""
    if rows:
        keyed = ({"run_key": row["run_id"], "name_key": row["name"]} for row in rows)
        changed = ({f"new_{name}": row[name] for name in _CHANGED} for row in rows)
        connection.execute(_UPDATE, [{**key, **values} for key, values in zip(keyed, changed, strict=True)])


def summary_of(connection: Connection, run_id: int) -> dict[str, Any]:
    return summaries_of(connection, [run_id]).get(run_id, {})


def summaries_of(connection: Connection, run_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for some in portions(sorted(run_ids)):
        query = select(summaries).where(summaries.c.run_id.in_(some))
        found.update({row.run_id: json.loads(row.body) for row in connection.execute(query)})
    return found


def put_summary(connection: Connection, run_id: int, summary: dict[str, Any]) -> None:
    body = json.dumps(summary)
    if not connection.execute(update(summaries).where(summaries.c.run_id == run_id).values(body=body)).rowcount:
        connection.execute(insert(summaries).values(run_id=run_id, body=body))


def _of(key: AttemptKey) -> dict[str, Any]:
    return {"run_key": key.run, "attempt_key": key.attempt}
