"""Requests of agents: hello, sync, bytes of files, and the long poll for news between two syncs."""

from __future__ import annotations

import asyncio
import dataclasses

from starlette.responses import Response

from runyard import errors
from runyard.model.json_schema import ANYTHING, BOOLEAN, Schema, integer, listed, record
from runyard.model.roles import Role
from runyard.model.wire import RELAYED_FILES, AttemptKey, ExpiryQuestion, Hello, SyncRequest, SyncResponse
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.common import NAME, RUN_ID
from runyard.server.stream import unless_gone

LARGEST_PIECE = 16 << 20  # bytes of a file in one request
LONGEST_WAIT = 60


async def list_agents(call: Call) -> Response:
    return answer({"agents": await call.service.read(call.service.yard.sites.agents)})


async def hello(call: Call) -> Response:
    future = call.service.yard.hello(call.caller, await call.parse(Hello))
    incarnation, claims = await asyncio.wrap_future(future)
    return answer({"incarnation": incarnation, "claims": [claim.to_json() for claim in claims]})


async def sync(call: Call) -> Response:
    return answer((await _sync(call, await call.parse(SyncRequest))).to_json())


async def _sync(call: Call, request: SyncRequest) -> SyncResponse:
    """Subscribes before it queries, so that nothing that happens in between is missed."""
    with call.service.listening(f"site:{request.site}") as bell:
        asked = await call.service.read(call.service.yard.sync, call.caller, request)  # it looks at files first
        response = await asyncio.wrap_future(asked)
        if not call["wait"] or _says_something(response):
            return response
        await unless_gone(call.receive, bell.wait(call["wait"]))
    again = dataclasses.replace(request, reports=[])
    return await asyncio.wrap_future(call.service.yard.sync(call.caller, again))


def _says_something(response: SyncResponse) -> bool:
    return bool(response.claims or response.stops or response.settled or response.wanted)


async def describe_site(call: Call) -> Response:
    site = _own_site(call)
    shown = await call.service.read(call.service.yard.sites.get, site)
    return answer({"name": site, "config": shown["config"]})


def _own_site(call: Call) -> str:
    site = str(call["site"])
    if call.caller.role == Role.AGENT and call.caller.site != site:
        raise errors.Forbidden(f"your token serves site {call.caller.site!r}, not {site!r}")
    return site


async def news(call: Call) -> Response:
    site, seen = _own_site(call), call["seen"]
    with call.service.listening(f"site:{site}") as bell:
        number = call.service.news.number(site)
        told = seen is not None and seen != number
        told = told or await unless_gone(call.receive, bell.wait(call["wait"]))
    return answer({"news": told, "number": call.service.news.number(site)})


async def put_file(call: Call) -> Response:
    data = await call.bytes(LARGEST_PIECE)
    key = AttemptKey(run=call["run"], attempt=call["attempt"])
    owner = (call.caller, call["site"], call["agent"], call["incarnation"])
    held = await call.service.write(call.service.yard.append, *owner, key, call["file"], call["offset"], data)
    return answer({"size": held})


async def expire(call: Call) -> Response:
    asked = await call.parse(ExpiryQuestion)
    who = (asked.site, asked.agent, asked.incarnation)
    found = await asyncio.wrap_future(call.service.yard.expire_checkpoints(call.caller, *who, asked.runs))
    return answer({"expired": {str(run): attempt for run, attempt in found.items()}})


SITE = query("site", NAME, "The agent's site", required=True)
WAIT: Schema = {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT}
INTRODUCED = record({"incarnation": integer("Send this from now on", 1), "claims": listed(ref("Claim"))})
NEWS = record({"news": BOOLEAN, "number": integer("Send this as `seen` next time")})

ROUTES = (
    Route(
        method="GET", path="/agents", handler=list_agents, access=Access.VIEWER, summary="List agents",
        answers=(Answer(description="All agents", schema=record({"agents": listed(ref("Agent"))})),),
    ),
    Route(
        method="POST", path="/agents/hello", handler=hello, access=Access.AGENT,
        summary="An agent starts: it gets a new incarnation and its open attempts", body=Body(schema=ref("Hello")),
        answers=(Answer(description="What it owns", schema=INTRODUCED),), errors=(404,),
    ),
    Route(
        method="POST", path="/agents/sync", handler=sync, access=Access.AGENT,
        summary="One exchange: reports of the agent, new work for it", body=Body(schema=ref("SyncRequest")),
        parameters=(query("wait", {**WAIT, "default": 0}, "Seconds to wait when there is nothing to do"),),
        answers=(Answer(description="What to do", schema=ref("SyncResponse")),), errors=(409,),
    ),
    Route(
        method="GET", path="/agents/site", handler=describe_site, access=Access.AGENT,
        summary="The description of the agent's site", parameters=(SITE,),
        answers=(Answer(description="The site", schema=record({"name": NAME, "config": ref("SiteSpec")})),),
        errors=(404,),
    ),
    Route(
        method="GET", path="/agents/news", handler=news, access=Access.AGENT,
        summary="Wait until something happens for a site",
        description="Answers at once when something happened since the number given as `seen`.",
        parameters=(
            SITE,
            query("wait", {**WAIT, "default": 20}, "Seconds to wait at most"),
            query("seen", integer("", 0, 1 << 62), "The number of the last answer"),
        ),
        answers=(Answer(description="Whether there is news", schema=NEWS),),
    ),
    Route(
        method="POST", path="/agents/checkpoints", handler=expire, access=Access.AGENT,
        summary="Which runs' checkpoints an agent may delete", body=Body(schema=ref("ExpiryQuestion")),
        answers=(Answer(description="Runs, each with its newest attempt", schema=record({"expired": ANYTHING})),),
        errors=(409,),
    ),
    Route(
        method="PUT", path="/agents/files/{run}/{attempt}/{file}", handler=put_file, access=Access.AGENT,
        summary="Add bytes to a file of an attempt",
        description="A wrong offset changes nothing: the answer is the stored size, at which to continue.",
        parameters=(
            path("run", RUN_ID, "The run"),
            path("attempt", integer("", 1, 1 << 31), "The attempt"),
            path("file", {"type": "string", "enum": list(RELAYED_FILES)}, "Its file"),
            SITE,
            query("agent", NAME, "The agent's name", required=True),
            query("incarnation", integer("", 0, 1 << 31), "From hello", required=True),
            query("offset", integer("", 0, 1 << 62), "Offset of the bytes in the file", required=True),
        ),
        body=Body(schema={"type": "string", "format": "binary"}, media_type="application/octet-stream"),
        answers=(Answer(description="The size held", schema=record({"size": integer("Bytes")})),), errors=(409,),
    ),
)  # fmt: skip
