"""Rows of requests that arrived as messages, and of their replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, exists, func, insert, or_, select, update

from runyard.model.states import FINAL, RunState
from runyard.store.rows import AnyRow
from runyard.store.tables import requests, runs

UNNAMED = "request:"  # the identity of a message without a name begins so, and no name does
_OPEN_STATES = sorted(state.value for state in RunState if state not in FINAL)
_BY_ID = select(requests).where(requests.c.id == bindparam("request_id"))
_BY_IDENTITY = select(requests).where(
    requests.c.queue == bindparam("of_queue"), requests.c.identity == bindparam("known_by")
)
_HAS_OPEN_RUNS = exists().where(
    runs.c.id.between(requests.c.first_run, requests.c.first_run + requests.c.run_count - 1),
    runs.c.state.in_(_OPEN_STATES),
)
_UNANSWERED = (requests.c.replied_at.is_(None), requests.c.reply_to.is_not(None))


def add(connection: Connection, **values: Any) -> None:
    connection.execute(insert(requests).values(tries=0, **values))


def change(connection: Connection, request_id: int, **values: Any) -> None:
    connection.execute(update(requests).where(requests.c.id == request_id).values(**values))


def answered(connection: Connection, request_id: int, held_until: float, now: float, remark: str | None) -> None:
    """Unless it was requested again since it was reserved until then."""
    held = (requests.c.id == request_id, requests.c.next_try == held_until)
    connection.execute(update(requests).where(*held).values(replied_at=now, trouble=remark))


def get(connection: Connection, request_id: int) -> AnyRow | None:
    return connection.execute(_BY_ID, {"request_id": request_id}).first()


def by_identity(connection: Connection, queue: str, identity: str) -> AnyRow | None:
    return connection.execute(_BY_IDENTITY, {"of_queue": queue, "known_by": identity}).first()


def newest_unnamed(connection: Connection, queue: str, digest: str) -> AnyRow | None:
    """The newest request with this content whose message had no id."""
    query = select(requests).where(requests.c.queue == queue, requests.c.digest == digest)
    query = query.where(requests.c.identity.startswith(UNNAMED))
    return connection.execute(query.order_by(requests.c.id.desc()).limit(1)).first()


def due(connection: Connection, queues: Sequence[str], now: float, limit: int) -> list[AnyRow]:
    """Requests that have ended or were refused, and whose reply may be tried now."""
    query = select(requests).where(*_UNANSWERED, requests.c.next_try <= now, requests.c.queue.in_(queues))
    query = query.where(requests.c.waiting.is_(None), or_(requests.c.first_run.is_(None), ~_HAS_OPEN_RUNS))
    return list(connection.execute(query.order_by(requests.c.next_try, requests.c.id).limit(limit)).all())


def waiting(connection: Connection, queue: str, now: float, limit: int) -> list[AnyRow]:
    """Requests that wait for files, and whose fetch may be tried now."""
    query = select(requests).where(requests.c.queue == queue, requests.c.waiting.is_not(None))
    return list(connection.execute(query.where(requests.c.next_try <= now).order_by(requests.c.id).limit(limit)).all())


def page(
    connection: Connection, *, queue: str | None, unanswered: bool, before: int | None, limit: int
) -> list[AnyRow]:
    """Newest first, each with `open_runs`: whether one of its runs has not ended yet."""
    query = select(requests, _HAS_OPEN_RUNS.label("open_runs")).order_by(requests.c.id.desc()).limit(limit)
    if queue is not None:
        query = query.where(requests.c.queue == queue)
    if unanswered:
        query = query.where(*_UNANSWERED)
    if before is not None:
        query = query.where(requests.c.id < before)
    return list(connection.execute(query).all())


def send_again(connection: Connection, now: float, *, ids: Sequence[int] = (), queue: str | None = None) -> list[int]:
    """Make replies due that have been sent or are waiting; returns which."""
    chosen = requests.c.id.in_(ids) if queue is None else requests.c.queue == queue
    statement = update(requests).where(chosen, requests.c.reply_to.is_not(None))
    again = statement.values(replied_at=None, due_at=None, tries=0, next_try=now, trouble=None)
    return sorted(row.id for row in connection.execute(again.returning(requests.c.id)))


def forget(connection: Connection, before: float) -> list[AnyRow]:
    """Those that were answered, or whose answer was first tried, before then; and those without a reply queue.
    Returns the unanswered ones among them."""
    old = func.coalesce(requests.c.replied_at, requests.c.due_at) < before
    unwanted = and_(requests.c.reply_to.is_(None), requests.c.received_at < before, ~_HAS_OPEN_RUNS)
    gone = connection.execute(delete(requests).where(or_(old, unwanted)).returning(*requests.c)).all()
    return [row for row in gone if row.replied_at is None and row.reply_to is not None]
