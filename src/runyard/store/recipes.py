"""Rows of recipes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from runyard.store.rows import AnyRow
from runyard.store.tables import recipes

_BY_NAME = select(recipes).where(recipes.c.name == bindparam("name"))
_DEFAULT = select(recipes).where(recipes.c.is_default == 1)


def every(connection: Connection) -> list[AnyRow]:
    return list(connection.execute(select(recipes).order_by(recipes.c.name)).all())


def get(connection: Connection, name: str) -> AnyRow | None:
    return connection.execute(_BY_NAME, {"name": name}).first()


def default(connection: Connection) -> AnyRow | None:
    return connection.execute(_DEFAULT).first()


def put(connection: Connection, name: str, **values: Any) -> None:
    if get(connection, name) is None:
        connection.execute(insert(recipes).values(name=name, **values))
    else:
        connection.execute(update(recipes).where(recipes.c.name == name).values(**values))


def make_default(connection: Connection, name: str) -> None:
    connection.execute(update(recipes).values(is_default=0))
    connection.execute(update(recipes).where(recipes.c.name == name).values(is_default=1))


def remove(connection: Connection, name: str) -> None:
    connection.execute(delete(recipes).where(recipes.c.name == name))
