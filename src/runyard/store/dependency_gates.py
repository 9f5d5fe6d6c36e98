"""Dependencies of runs. A gate blocks one run or many, and opens when the runs that it waits for have ended.

Runs that wait for the same runs share a gate: an array of a thousand tasks after another one costs two thousand rows,
and not a million.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, insert, select, update

from runyard.model.states import FINAL, RunState
from runyard.store import counters
from runyard.store.rows import AnyRow
from runyard.store.tables import children, parents, runs


class GateKind(enum.StrEnum):
    """How the runs that a gate waits for must have ended."""

    OK = "ok"  # it succeeded
    ANY = "any"  # however
    TURN = "turn"  # however: it is the task of the same array whose place is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    parents: Mapping[int, GateKind]
    children: Sequence[int]
    shut: bool


_IS_OPEN = runs.c.state.not_in(sorted(FINAL))
_BEHIND = select(parents.c.gate_id, parents.c.kind).where(parents.c.parent_id == bindparam("run"))
_LEFT = (
    select(func.min(parents.c.parent_id).label("first"), func.count().label("number"))
    .join(runs, runs.c.id == parents.c.parent_id)
    .where(parents.c.gate_id == bindparam("gate"), _IS_OPEN)
)
_WAITING = select(children.c.child_id).where(children.c.gate_id == bindparam("gate"), children.c.shut == 1)


def add(connection: Connection, made: Sequence[Gate]) -> None:
    if not made:
        return
    numbered = list(enumerate(made, counters.take(connection, "gates", len(made))))
    before = [
        {"gate_id": number, "parent_id": parent, "kind": kind}
        for number, gate in numbered
        for parent, kind in gate.parents.items()
    ]
    behind = [
        {"gate_id": number, "child_id": child, "shut": int(gate.shut)}
        for number, gate in numbered
        for child in gate.children
    ]
    connection.execute(insert(parents), before)
    connection.execute(insert(children), behind)


def behind(connection: Connection, run_id: int) -> list[AnyRow]:
    """The gates that wait for this run: `gate_id`, `kind`."""
    return list(connection.execute(_BEHIND, {"run": run_id}).all())


def waiting(connection: Connection, gate_id: int, limit: int | None = None) -> list[int]:
    """The runs that this gate blocks."""
    return list(connection.execute(_WAITING.limit(limit), {"gate": gate_id}).scalars())


def left(connection: Connection, gate_id: int) -> tuple[int, int]:
    """How many runs the gate still waits for, and the first of them."""
    row = connection.execute(_LEFT, {"gate": gate_id}).one()
    return row.number, row.first


def obstacles(connection: Connection, run_id: int) -> list[AnyRow]:
    """Dependencies of this run that have not succeeded: `gate_id`, `parent_id`, `kind`, `state`."""
    query = _before(run_id).add_columns(parents.c.gate_id, parents.c.kind, runs.c.state)
    query = query.join(runs, runs.c.id == parents.c.parent_id).where(runs.c.state != RunState.SUCCEEDED)
    return list(connection.execute(query).all())


def parents_of(connection: Connection, run_id: int) -> list[int]:
    return list(dict.fromkeys(connection.execute(_before(run_id)).scalars()))


def _before(run_id: int) -> Select[Any]:
    query = select(parents.c.parent_id).join(children, children.c.gate_id == parents.c.gate_id)
    return query.where(children.c.child_id == run_id).order_by(parents.c.parent_id)


def wait_for_too(connection: Connection, gate_id: int, run_id: int, kind: GateKind) -> None:
    known = select(parents.c.kind).where(parents.c.gate_id == gate_id, parents.c.parent_id == run_id)
    if connection.execute(known).first() is None:
        connection.execute(insert(parents).values(gate_id=gate_id, parent_id=run_id, kind=kind))


def open_for_all(connection: Connection, gate_id: int) -> None:
    """The runs of this gate wait for one gate less."""
    queued = runs.c.id.in_(select(children.c.child_id).where(children.c.gate_id == gate_id, children.c.shut == 1))
    connection.execute(
        update(runs).where(queued, runs.c.state == RunState.QUEUED).values(blocked=runs.c.blocked - 1, detail=None)
    )
    forget(connection, gate_id)


def forget(connection: Connection, gate_id: int) -> None:
    """Delete the gate: no run waits for it any more."""
    connection.execute(update(children).where(children.c.gate_id == gate_id).values(shut=0))


def shut_for(connection: Connection, run_id: int, gate_ids: Collection[int]) -> None:
    """Set the gates that block the run to exactly these."""
    own = children.c.child_id == run_id
    connection.execute(update(children).where(own).values(shut=0))
    connection.execute(update(children).where(own, children.c.gate_id.in_(gate_ids)).values(shut=1))


def passed(connection: Connection, run_id: int) -> list[AnyRow]:
    """Runs that passed a gate that waits for this run, and are blocked by another: `gate_id`, `child_id`."""
    query = (
        select(children.c.gate_id, children.c.child_id)
        .join(parents, parents.c.gate_id == children.c.gate_id)
        .join(runs, runs.c.id == children.c.child_id)
        .where(parents.c.parent_id == run_id, children.c.shut == 0)
        .where(runs.c.state == RunState.QUEUED, runs.c.blocked > 0)
    )
    return list(connection.execute(query).all())


def shut_again(connection: Connection, gate_id: int, child_id: int) -> None:
    one = (children.c.gate_id == gate_id, children.c.child_id == child_id)
    connection.execute(update(children).where(*one).values(shut=1))
    connection.execute(update(runs).where(runs.c.id == child_id).values(blocked=runs.c.blocked + 1))
