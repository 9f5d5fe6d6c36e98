"""Secrets of the yard itself."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from runyard.store.tables import keys


def get(connection: Connection, name: str) -> str | None:
    return connection.execute(select(keys.c.value).where(keys.c.name == name)).scalar()


def keep(connection: Connection, name: str, value: str, now: float) -> str:
    """The key of that name: this one, unless there is one already."""
    known = get(connection, name)
    if known is None:
        connection.execute(insert(keys).values(name=name, value=value, created_at=now))
    return known or value
