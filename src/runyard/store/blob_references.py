"""All texts in the store that may name blobs, unparsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, select

from runyard.store import tables


def specs(connection: Connection, after: int, limit: int) -> list[tuple[int, str]]:
    """Of runs, with their numbers, in the order of these."""
    return _page(connection, tables.runs.c.id, tables.runs.c.spec, after, limit)


def sweeps(connection: Connection, after: int, limit: int) -> list[tuple[int, str]]:
    """The same of sweeps."""
    return _page(connection, tables.sweeps.c.id, tables.sweeps.c.document, after, limit)


def recipes(connection: Connection) -> Sequence[str]:
    return connection.execute(select(tables.recipes.c.config)).scalars().all()


def requests(connection: Connection) -> Sequence[str]:
    """Of requests whose runs are not created yet."""
    waiting = tables.requests.c.waiting
    return connection.execute(select(waiting).where(waiting.is_not(None))).scalars().all()


def _page(
    connection: Connection, number: Column[Any], text: Column[Any], after: int, limit: int
) -> list[tuple[int, str]]:
    query = select(number, text).where(number > after).order_by(number).limit(limit)
    return [(row[0], row[1]) for row in connection.execute(query)]
