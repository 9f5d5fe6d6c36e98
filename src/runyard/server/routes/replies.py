"""Requests that came through the broker, and the replies to them."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard import errors
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.check import check
from runyard.server.parameters import query
from runyard.server.route import Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.build import BOOLEAN, integer, listed, or_null, record, text
from runyard.server.schemas.common import NAME

MOST_IDS = 1000
NUMBER = integer("The request's number", 1, 1 << 62)


async def list_replies(call: Call) -> Response:
    page = {name: call[name] for name in ("queue", "unanswered", "before", "limit")}
    found = await call.service.read(call.service.yard.outbox.every, **page)
    return answer({"replies": found, "next": found[-1]["id"] if len(found) == call["limit"] else None})


async def resend(call: Call) -> Response:
    given = await call.json()
    check(given, RESEND, "resend")
    if ("ids" in given) == ("queue" in given):
        raise errors.InvalidInput("name either the requests or their queue", 'send {"ids": [1]} or {"queue": "tasks"}')
    future = call.service.yard.outbox.resend(given.get("ids", ()), given.get("queue"))
    return answer({"ids": await asyncio.wrap_future(future)})


RESEND = record({"ids": listed(NUMBER, minItems=1, maxItems=MOST_IDS), "queue": NAME}, required=[])
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
        description="Of these requests, or of all that an intake remembers: for seven days after the reply.",
        body=Body(schema=RESEND, example={"ids": [1]}), errors=(404, 409),
        answers=(Answer(description="Those that are sent again", schema=record({"ids": listed(NUMBER)})),),
    ),
)  # fmt: skip
