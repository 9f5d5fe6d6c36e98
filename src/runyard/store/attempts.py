"""Rows of attempts, batches and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from runyard.model.wire import AttemptKey
from runyard.store.rows import AnyRow, portions
from runyard.store.tables import attempts, batches, outputs, runs

_KEY = (attempts.c.run_id == bindparam("run_key"), attempts.c.number == bindparam("number_key"))
_BY_KEY = select(attempts).where(*_KEY)
_BY_RUNS = select(attempts).where(attempts.c.run_id.in_(bindparam("runs", expanding=True)))
_ALIVE = (
    select(attempts, batches.c.name.label("batch"), runs.c.spec, runs.c.cancel_at)
    .join(runs, runs.c.id == attempts.c.run_id)
    .join(batches, batches.c.id == attempts.c.batch_id)
    .where(attempts.c.state != "ended", attempts.c.site == bindparam("site"), attempts.c.agent == bindparam("agent"))
    .order_by(attempts.c.run_id)
)
_WISHED = (
    select(
        attempts.c.run_id, attempts.c.number, attempts.c.asked, attempts.c.brought, attempts.c.asked_checkpoint,
        attempts.c.brought_checkpoint, runs.c.cancel_at, runs.c.stop_detail,
    )
    .join(runs, runs.c.id == attempts.c.run_id)
    .where(attempts.c.state != "ended", attempts.c.site == bindparam("site"), attempts.c.agent == bindparam("agent"))
    .where(
        runs.c.cancel_at.is_not(None)
        | (attempts.c.asked > attempts.c.brought)
        | (attempts.c.asked_checkpoint > attempts.c.brought_checkpoint)
    )
)  # fmt: skip
_UPDATE_CACHE: dict[tuple[str, ...], Any] = {}


def insert_batch(connection: Connection, row: dict[str, Any]) -> None:
    connection.execute(insert(batches), row)


def insert_attempts(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(insert(attempts), rows)


def get(connection: Connection, run_id: int, number: int) -> AnyRow | None:
    return connection.execute(_BY_KEY, {"run_key": run_id, "number_key": number}).first()


def get_many(connection: Connection, keys: Iterable[AttemptKey]) -> dict[AttemptKey, AnyRow]:
    wanted = set(keys)
    found: dict[AttemptKey, AnyRow] = {}
    for some in portions(sorted({key.run for key in wanted})):
        for row in connection.execute(_BY_RUNS, {"runs": some}):
            found[AttemptKey(run=row.run_id, attempt=row.number)] = row
    return {key: row for key, row in found.items() if key in wanted}


def alive_runs(connection: Connection, limit: int) -> list[AnyRow]:
    """Which agent has which run now, oldest first."""
    query = select(attempts.c.run_id, attempts.c.site, attempts.c.agent).where(attempts.c.state != "ended")
    return list(connection.execute(query.order_by(attempts.c.run_id).limit(limit)).all())


def of_run(connection: Connection, run_id: int) -> list[AnyRow]:
    query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.number)
    return list(connection.execute(query).all())


def nodes_of(connection: Connection, run_ids: Iterable[int], site: str, reasons: Iterable[str]) -> list[AnyRow]:
    """Run, number and node of those runs' attempts at the site that ended for one of these reasons; oldest first."""
    found: list[AnyRow] = []
    query = (
        select(attempts.c.run_id, attempts.c.number, attempts.c.node)
        .where(attempts.c.site == site, attempts.c.reason.in_(list(reasons)), attempts.c.node.is_not(None))
        .order_by(attempts.c.run_id, attempts.c.number)
    )
    for some in portions(sorted(run_ids)):
        found += connection.execute(query.where(attempts.c.run_id.in_(some)))
    return found


def numbers(connection: Connection, run_id: int) -> list[tuple[int, str | None]]:
    """Number and node of each attempt, oldest first."""
    query = select(attempts.c.number, attempts.c.node).where(attempts.c.run_id == run_id).order_by(attempts.c.number)
    return [(row.number, row.node) for row in connection.execute(query)]


def alive(connection: Connection, site: str, agent: str) -> list[AnyRow]:
    """With the batch's name and the run's spec: all that an agent needs to resume them."""
    return list(connection.execute(_ALIVE, {"site": site, "agent": agent}).all())


def alive_of_site(connection: Connection, site: str) -> int:
    query = select(func.count()).select_from(attempts).where(attempts.c.state != "ended", attempts.c.site == site)
    return int(connection.execute(query).scalar() or 0)


def on_site(connection: Connection, site: str, limit: int) -> list[AnyRow]:
    """Which agent has which run now, with its owner and node; oldest first."""
    facts = (attempts.c.agent, attempts.c.node, attempts.c.claimed_at, attempts.c.started_at)
    query = (
        select(runs.c.id, runs.c.owner, runs.c.project, runs.c.name, runs.c.state, *facts)
        .join(runs, runs.c.id == attempts.c.run_id)
        .where(attempts.c.state != "ended", attempts.c.site == site)
    )
    return list(connection.execute(query.order_by(attempts.c.run_id).limit(limit)).all())


def wished(connection: Connection, site: str, agent: str) -> list[AnyRow]:
    """Attempts with a stop request, or a request for current outputs."""
    return list(connection.execute(_WISHED, {"site": site, "agent": agent}).all())


def change(connection: Connection, run_id: int, number: int, **values: Any) -> None:
    names = tuple(values)
    statement = _UPDATE_CACHE.get(names)
    if statement is None:
        assignments: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
        statement = _UPDATE_CACHE[names] = update(attempts).where(*_KEY).values(assignments)
    given = {f"new_{name}": value for name, value in values.items()}
    connection.execute(statement, {"run_key": run_id, "number_key": number, **given})


def replace_outputs(connection: Connection, run_id: int, number: int, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(delete(outputs).where(outputs.c.run_id == run_id, outputs.c.attempt == number))
    if rows:
        connection.execute(insert(outputs), [{"run_id": run_id, "attempt": number, **row} for row in rows])


def outputs_of(connection: Connection, run_id: int) -> list[AnyRow]:
    """Outputs of the newest attempt that has any."""
    newest = select(func.max(outputs.c.attempt)).where(outputs.c.run_id == run_id).scalar_subquery()
    query = select(outputs).where(outputs.c.run_id == run_id, outputs.c.attempt == newest).order_by(outputs.c.path)
    return list(connection.execute(query).all())
