"""Requests of other programs that arrive as messages: each is stored once, together with its runs, however often its
message arrives."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model.intake import Intake
from runyard.model.request import Asked, Params, Sender
from runyard.model.roles import Caller, Role
from runyard.store import Store, counters, requests
from runyard.store.rows import AnyRow
from runyard.yard.incoming.recipes import Recipes

REPLIES = "replies"  # the hint that a reply may be due


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    id: int
    runs: range
    created: bool  # False: the message came before, and nothing new was started


class Requests:
    def __init__(self, store: Store, hints: Hints, recipes: Recipes) -> None:
        self._store, self._hints, self._recipes = store, hints, recipes

    def accept(self, intake: Intake, asked: Asked, bodies: list[Params], *, is_group: bool) -> Future[Accepted]:
        """Start the intake's recipe, once for each body, in one commit with the request itself.

        A repeated message starts nothing; its reply is sent again if it was sent. Raises what `Recipes.request`
        raises; a message that was refused is checked again.
        """
        with self._store.read() as connection:
            known = find(connection, intake.name, asked)
        ready = None
        if known is None or known.error is not None:
            ready = self._recipes.ready(caller_of(intake), intake.recipe, bodies)

        def work(connection: Connection) -> Accepted:
            now, known = self._store.now(), find(connection, intake.name, asked)
            if known is not None and known.error is None:
                return again(connection, now, known, asked)
            if ready is None:  # forgotten since we looked
                raise errors.NotFound("the request was forgotten meanwhile")
            started = ready.start(connection, now)
            ids = range(started.runs[0].id, started.runs[0].id + len(started.runs))
            facts = {"recipe": started.recipe, "first_run": ids.start, "run_count": len(ids), "is_group": int(is_group)}
            return Accepted(id=put(connection, now, intake.name, asked, known, **facts), runs=ids, created=True)

        return self._store.write(work, lambda _: self._ring())

    def refuse(self, intake: Intake, asked: Asked, error: str) -> Future[int]:
        """Store an error reply for the sender of an invalid message."""

        def work(connection: Connection) -> int:
            now, known = self._store.now(), find(connection, intake.name, asked)
            if known is not None and known.error is None:  # its name belongs to a request that was accepted
                known, asked_anew = None, _renamed(asked)
            else:
                asked_anew = asked
            return put(connection, now, intake.name, asked_anew, known, error=error.replace("\0", ""))

        return self._store.write(work, lambda _: self._hints.ring(REPLIES))

    def _ring(self) -> None:
        self._hints.ring_all("site:")
        self._hints.ring(REPLIES)


def caller_of(intake: Intake) -> Caller:
    """The configuration itself allows the queue to start its recipe."""
    named = (intake.recipe,) if intake.recipe is not None else ()
    return Caller(name=intake.caller, role=Role.CALLER, recipes=named, any_recipe=intake.recipe is None)


def find(connection: Connection, queue: str, asked: Asked) -> AnyRow | None:
    """A message without an id is identified by its content, and only if the broker marks it as redelivered."""
    if asked.sender.identity:
        return requests.by_identity(connection, queue, asked.sender.identity)
    return requests.newest_unnamed(connection, queue, asked.digest) if asked.redelivered else None


def again(connection: Connection, now: float, known: AnyRow, asked: Asked) -> Accepted:
    if known.digest != asked.digest:
        raise errors.Conflict(
            f"{known.identity} was used for request {known.id}, which asks for something else",
            "give each request a correlation id of its own",
        )
    reply_to = asked.sender.reply_to or known.reply_to  # the sender may have a new queue since
    if known.due_at is not None or reply_to != known.reply_to:  # sent, or on its way: the sender wants it anew
        requests.change(
            connection, known.id, reply_to=reply_to, replied_at=None, due_at=None, tries=0, next_try=now, trouble=None
        )
    first = known.first_run or 0  # none yet, while it waits for files
    return Accepted(id=known.id, runs=range(first, first + known.run_count), created=False)


def put(connection: Connection, now: float, queue: str, asked: Asked, refused: AnyRow | None, **facts: Any) -> int:
    """A new request, or one that was refused before and is sent again."""
    values = {
        "digest": asked.digest, "correlation_id": asked.sender.correlation_id,
        "reply_to": asked.sender.reply_to, "recipe": None, "first_run": None, "run_count": 0, "is_group": 0,
        "error": None, "waiting": None, "received_at": now, "due_at": None, "replied_at": None, "next_try": now,
        "trouble": None, **facts,
    }  # fmt: skip
    if refused is not None:
        requests.change(connection, refused.id, tries=0, **values)
        return int(refused.id)
    request_id = counters.take(connection, "requests")
    identity = asked.sender.identity or f"{requests.UNNAMED}{request_id}"
    requests.add(connection, id=request_id, queue=queue, identity=identity, **values)
    return request_id


def _renamed(asked: Asked) -> Asked:
    """Without its id, which is already used."""
    sender = Sender(correlation_id=asked.sender.correlation_id, reply_to=asked.sender.reply_to)
    return Asked(sender=sender, digest=asked.digest)
