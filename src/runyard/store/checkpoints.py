"""Rows of checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from runyard.store import blob_deletions
from runyard.store.rows import AnyRow, portions
from runyard.store.tables import attempts, checkpoints, runs

_OF_RUNS = (
    select(checkpoints)
    .where(checkpoints.c.run_id.in_(bindparam("runs", expanding=True)))
    .order_by(checkpoints.c.number)
)


def of_run(connection: Connection, run_id: int) -> list[AnyRow]:
    """Oldest first. Without those that `retry --afresh` discarded."""
    query = select(checkpoints).where(checkpoints.c.run_id == run_id).order_by(checkpoints.c.number)
    return list(connection.execute(query).all())


def newest(connection: Connection, run_ids: Sequence[int]) -> dict[int, AnyRow]:
    """Of each of these runs that has any."""
    found: dict[int, AnyRow] = {}
    for some in portions(run_ids):
        rows = connection.execute(_OF_RUNS, {"runs": some})
        found.update({row.run_id: row for row in rows})
    return found


def places(connection: Connection, run_ids: Sequence[int]) -> list[AnyRow]:
    """The sites and agents on which attempts of these runs started, or may have started before they were lost; oldest
    first. Without those that `retry --afresh` discarded."""
    found: list[AnyRow] = []
    is_lost = (attempts.c.state == "ended") & (attempts.c.reason == "lost") & attempts.c.record.is_(None)
    facts = (attempts.c.run_id, attempts.c.number, attempts.c.site, attempts.c.agent, attempts.c.node)
    for some in portions(run_ids):
        query = (
            select(*facts, attempts.c.reason, attempts.c.state)
            .join(runs, runs.c.id == attempts.c.run_id)
            .where(attempts.c.run_id.in_(some), attempts.c.number > runs.c.afresh)
            .where(attempts.c.started_at.is_not(None) | is_lost)
            .order_by(attempts.c.run_id, attempts.c.number)
        )
        found += connection.execute(query)
    return found


def insert_one(connection: Connection, row: dict[str, Any]) -> None:
    connection.execute(insert(checkpoints), row)


def change(connection: Connection, run_id: int, number: int, **values: Any) -> None:
    place = (checkpoints.c.run_id == run_id, checkpoints.c.number == number)
    connection.execute(update(checkpoints).where(*place).values(values))


def remove(connection: Connection, now: float, run_id: int, numbers: Iterable[int]) -> None:
    """Their blobs are deleted later, unless something else refers to them."""
    gone = list(numbers)
    if gone:
        place = (checkpoints.c.run_id == run_id, checkpoints.c.number.in_(gone))
        trees = connection.execute(select(checkpoints.c.tree).where(*place, checkpoints.c.tree.is_not(None)))
        blob_deletions.prune(connection, now, trees.scalars())
        connection.execute(delete(checkpoints).where(*place))


def trees(connection: Connection) -> set[str]:
    """Of all checkpoints in the yard."""
    query = select(checkpoints.c.tree).where(checkpoints.c.tree.is_not(None)).distinct()
    return set(connection.execute(query).scalars())
