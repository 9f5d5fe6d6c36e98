"""Sites: where runs execute."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard.model import fields, spec_values
from runyard.model.json_schema import listed, record
from runyard.model.site import SiteSpec
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path
from runyard.server.route import Answer, Body, Route
from runyard.server.schemas import COMPONENTS, ref
from runyard.server.schemas.common import NAME as NAME_SHAPE


async def list_sites(call: Call) -> Response:
    return answer({"sites": await call.service.read(call.service.yard.sites.all)})


async def get_site(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.sites.get, call["name"]))


async def add_site(call: Call) -> Response:
    given = fields.mapping(await call.json(), "site", ("name", *COMPONENTS["SiteSpec"]["properties"]))
    name = given.pop("name", None)
    future = call.service.yard.sites.add(spec_values.name_text(name, "name"), SiteSpec.parse(given))
    return answer(await asyncio.wrap_future(future), 201)


async def edit_site(call: Call) -> Response:
    changes = fields.mapping(await call.json(), "site", COMPONENTS["SiteSpec"]["properties"])
    return answer(await asyncio.wrap_future(call.service.yard.sites.edit(call["name"], changes)))


async def remove_site(call: Call) -> Response:
    await asyncio.wrap_future(call.service.yard.sites.remove(call["name"]))
    return Response(status_code=204)


async def drain(call: Call) -> Response:
    return answer(await asyncio.wrap_future(call.service.yard.sites.drain(call["name"], True)))


async def resume(call: Call) -> Response:
    return answer(await asyncio.wrap_future(call.service.yard.sites.drain(call["name"], False)))


NAME = path("name", NAME_SHAPE, "The site")

ROUTES = (
    Route(
        method="GET", path="/sites", handler=list_sites, access=Access.VIEWER, summary="List sites",
        answers=(Answer(description="All sites", schema=record({"sites": listed(ref("Site"))})),),
    ),
    Route(
        method="POST", path="/sites", handler=add_site, access=Access.ADMIN, summary="Add a site",
        body=Body(schema=ref("NewSite"), example={"name": "cedar", "kind": "slurm", "dir": "/scratch/runyard"}),
        answers=(Answer(status=201, description="The site", schema=ref("Site")),), errors=(409,),
    ),
    Route(
        method="PATCH", path="/sites/{name}", handler=edit_site, access=Access.ADMIN, parameters=(NAME,),
        summary="Change a site",
        description="Options and variables are changed one by one, and an empty value removes an entry.",
        body=Body(schema=ref("SiteSpec"), example={"options": {"partition": "gpu"}}),
        answers=(Answer(description="The site", schema=ref("Site")),), errors=(404, 409),
    ),
    Route(
        method="DELETE", path="/sites/{name}", handler=remove_site, access=Access.ADMIN, parameters=(NAME,),
        summary="Remove a site that has no unfinished runs",
        answers=(Answer(status=204, description="It is gone"),), errors=(404, 409),
    ),
    Route(
        method="GET", path="/sites/{name}", handler=get_site, access=Access.VIEWER, parameters=(NAME,),
        summary="Show a site, its agents and its runs",
        answers=(Answer(description="The site", schema=ref("FullSite")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sites/{name}/drain", handler=drain, access=Access.ADMIN, parameters=(NAME,),
        summary="Start no new runs at a site; running runs continue",
        answers=(Answer(description="The site", schema=ref("Site")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sites/{name}/resume", handler=resume, access=Access.ADMIN, parameters=(NAME,),
        summary="Let a drained site start runs again",
        answers=(Answer(description="The site", schema=ref("Site")),), errors=(404,),
    ),
)  # fmt: skip
