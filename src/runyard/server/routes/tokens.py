"""Tokens: who may do what."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard.model.json_schema import integer, listed, or_null, record, text
from runyard.model.roles import NewToken
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path
from runyard.server.route import Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.places import RECIPES, ROLE


async def list_tokens(call: Call) -> Response:
    return answer({"tokens": await call.service.read(call.service.yard.access.tokens)})


async def create_token(call: Call) -> Response:
    future = call.service.yard.access.create(await call.parse(NewToken))
    return answer(await asyncio.wrap_future(future), 201, {"Cache-Control": "no-store"})


async def revoke_token(call: Call) -> Response:
    await asyncio.wrap_future(call.service.yard.access.revoke(call["id"]))
    return Response(status_code=204)


async def show_me(call: Call) -> Response:
    caller = call.caller
    shown = {"name": caller.name, "role": caller.role.value, "site": caller.site, "recipes": list(caller.recipes)}
    return answer(shown)


ROUTES = (
    Route(
        method="GET", path="/tokens", handler=list_tokens, access=Access.ADMIN, summary="List tokens, without secrets",
        answers=(Answer(description="All tokens", schema=record({"tokens": listed(ref("Token"))})),),
    ),
    Route(
        method="POST", path="/tokens", handler=create_token, access=Access.ADMIN, summary="Make a token",
        body=Body(schema=ref("NewToken"), example={"name": "ada", "role": "member"}),
        answers=(Answer(status=201, description="The token; its secret is shown only once", schema=ref("Secret")),),
    ),
    Route(
        method="DELETE", path="/tokens/{id}", handler=revoke_token, access=Access.ADMIN, summary="Revoke a token",
        parameters=(path("id", integer("", 1, 1 << 62), "The token"),),
        answers=(Answer(status=204, description="It is no longer valid"),), errors=(404,),
    ),
    Route(
        method="GET", path="/me", handler=show_me, access=Access.ANY, summary="The owner and role of this token",
        answers=(
            Answer(
                description="Name and role",
                schema=record(
                    {"name": text(), "role": ROLE, "site": or_null(text("Of an agent")), "recipes": RECIPES}
                ),
            ),
        ),
    ),
)  # fmt: skip
