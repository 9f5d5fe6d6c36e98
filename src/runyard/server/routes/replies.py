"""Requests that came through the broker, and the replies to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response

from runyard import errors
from runyard.model.declaration import Declared, field, schema
from runyard.model.json_schema import BOOLEAN, integer, listed, or_null, record, text
from runyard.model.spec_values import NAME
from runyard.model.values import Many, Whole
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import query
from runyard.server.route import Answer, Body, Route
from runyard.server.schemas import ref

MOST_IDS = 1000
NUMBER = integer("The request's number", 1, 1 << 62)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resend(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    ids: tuple[int, ...] = field(Many(Whole(1, 1 << 62), least=1, most=MOST_IDS), default=(), help="These requests")
    queue: str | None = field(NAME, default=None, help="All requests that are stored for this intake")


async def list_replies(call: Call) -> Response:
    page = {name: call[name] for name in ("queue", "unanswered", "before", "limit")}
    found = await call.service.read(call.service.yard.outbox.every, **page)
    return answer({"replies": found, "next": found[-1]["id"] if len(found) == call["limit"] else None})


async def resend(call: Call) -> Response:
    given = await call.parse(Resend)
    if bool(given.ids) == (given.queue is not None):
        raise errors.InvalidInput("name either the requests or their queue", 'send {"ids": [1]} or {"queue": "tasks"}')
    future = call.service.yard.outbox.resend(given.ids, given.queue)
    return answer({"ids": await asyncio.wrap_future(future)})


PAGE = record({"replies": listed(ref("Reply")), "next": or_null(integer("Ask for `before` this one for more", 1))})

ROUTES = (
    Route(
        method="GET", path="/replies", handler=list_replies, access=Access.VIEWER,
        parameters=(
            query("queue", text(maxLength=100), "Only requests of this intake"),
            query("unanswered", {**BOOLEAN, "default": False}, "Only those whose reply is not sent yet"),
            query("before", NUMBER, "Only requests older than this one"),
            query("limit", {**integer("", 1, 1000), "default": 50}, "How many at most"),
        ),
        summary="List requests that came through the broker, newest first",
        answers=(Answer(description="A page", schema=PAGE),),
    ),
    Route(
        method="POST", path="/replies/resend", handler=resend, access=Access.ADMIN, summary="Send replies again",
        description="Of these requests, or of all that are stored for an intake: seven days after the reply.",
        body=Body(schema=schema(Resend), example={"ids": [1]}), errors=(404, 409),
        answers=(Answer(description="Those that are sent again", schema=record({"ids": listed(NUMBER)})),),
    ),
)  # fmt: skip
