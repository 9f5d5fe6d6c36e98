"""Sites: where runs execute."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path
from runyard.server.route import Answer, Route
from runyard.server.schemas import ref
from runyard.server.schemas.build import listed, record
from runyard.server.schemas.common import NAME as NAME_SHAPE


async def list_sites(call: Call) -> Response:
    return answer({"sites": await call.service.read(call.service.yard.sites)})


async def get_site(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.site, call["name"]))


async def drain(call: Call) -> Response:
    return answer(await asyncio.wrap_future(call.service.yard.drain(call.caller, call["name"], True)))


async def resume(call: Call) -> Response:
    return answer(await asyncio.wrap_future(call.service.yard.drain(call.caller, call["name"], False)))


NAME = path("name", NAME_SHAPE, "The site")

ROUTES = (
    Route(
        method="GET", path="/sites", handler=list_sites, access=Access.VIEWER, summary="List sites",
        answers=(Answer(description="All sites", schema=record({"sites": listed(ref("Site"))})),),
    ),
    Route(
        method="GET", path="/sites/{name}", handler=get_site, access=Access.VIEWER, parameters=(NAME,),
        summary="Show a site, its agents and the runs it has",
        answers=(Answer(description="The site", schema=ref("FullSite")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sites/{name}/drain", handler=drain, access=Access.ADMIN, parameters=(NAME,),
        summary="Start nothing new at a site; what runs there goes on",
        answers=(Answer(description="The site", schema=ref("Site")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sites/{name}/resume", handler=resume, access=Access.ADMIN, parameters=(NAME,),
        summary="Let a drained site start runs again",
        answers=(Answer(description="The site", schema=ref("Site")),), errors=(404,),
    ),
)  # fmt: skip
