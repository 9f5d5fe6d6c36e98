"""Sequence numbers: ids of runs, batches, tokens."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select, update

from runyard.store.tables import counters

_TAKE = (
    update(counters)
    .where(counters.c.name == bindparam("counter"))
    .values(value=counters.c.value + bindparam("amount"))
    .returning(counters.c.value)
)


def take(connection: Connection, name: str, amount: int = 1) -> int:
    """The first of `amount` new numbers."""
    last = connection.execute(_TAKE, {"counter": name, "amount": amount}).scalar()
    if last is None:
        connection.execute(insert(counters).values(name=name, value=amount))
        last = amount
    return int(last) - amount + 1


def current(connection: Connection, name: str) -> int:
    return int(connection.execute(select(counters.c.value).where(counters.c.name == name)).scalar() or 0)
