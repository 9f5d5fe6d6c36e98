"""The position of each listener in the event table, and the events after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from runyard.store.rows import AnyRow
from runyard.store.tables import cursors, events, runs


def get(connection: Connection, name: str) -> AnyRow | None:
    return connection.execute(select(cursors).where(cursors.c.name == name)).first()


def begin(connection: Connection, name: str, now: float) -> None:
    """A new listener gets the events from now on."""
    if get(connection, name) is None:
        newest = connection.execute(select(func.max(events.c.id))).scalar() or 0
        connection.execute(insert(cursors).values(name=name, position=newest, tries=0, next_try=now))


def begin_anew(connection: Connection, half: str, name: str, now: float) -> None:
    """A cursor that starts at the first event, replacing earlier ones: `name` begins with `half:`."""
    if get(connection, name) is None:
        connection.execute(delete(cursors).where(cursors.c.name.startswith(f"{half}:", autoescape=True)))
        connection.execute(insert(cursors).values(name=name, position=0, tries=0, next_try=now))


def change(connection: Connection, name: str, **values: Any) -> None:
    connection.execute(update(cursors).where(cursors.c.name == name).values(**values))


def events_after(connection: Connection, position: int, kinds: Iterable[str], limit: int) -> list[AnyRow]:
    """Oldest first, each with fields of its run."""
    about = (runs.c.project, runs.c.name, runs.c.owner, runs.c.recipe, runs.c.site)
    query = select(events, *about).join(runs, runs.c.id == events.c.run_id)
    query = query.where(events.c.id > position, events.c.kind.in_(list(kinds)))
    return list(connection.execute(query.order_by(events.c.id).limit(limit)).all())
