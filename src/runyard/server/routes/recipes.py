"""Recipes: commands that other programs may start, and the state of their requests."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard import errors
from runyard.bridges.training_runs import grid
from runyard.model.json_schema import ANYTHING, integer, listed, or_null, record, text
from runyard.model.recipe import Recipe
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.files import send_blob
from runyard.server.parameters import header, path, query
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.routes.outputs import DOWNLOADS, PARTIAL
from runyard.server.routes.runs import ACCEPTED, ID, LONGEST_WAIT, PAGE, STATE, parse_ids
from runyard.server.schemas import ref
from runyard.server.schemas.common import NAME as NAME_SHAPE
from runyard.server.stream import unless_gone, wait_for_run
from runyard.yard.incoming.recipes import Requested


async def list_recipes(call: Call) -> Response:
    return answer({"recipes": await call.service.read(call.service.yard.recipes.every, call.caller)})


async def get_recipe(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.recipes.get, call["name"]))


async def put_recipe(call: Call) -> Response:
    recipe = Recipe.parse(await call.json())
    future = call.service.yard.recipes.put(call.caller, call["name"], recipe, default=bool(call["default"]))
    return answer(await asyncio.wrap_future(future))


async def remove_recipe(call: Call) -> Response:
    await asyncio.wrap_future(call.service.yard.recipes.remove(call["name"]))
    return Response(status_code=204)


async def plan_recipe(call: Call) -> Response:
    bodies = configurations(call, await call.json())
    return answer(await call.service.read(_plan, call, bodies))


def _plan(call: Call, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    specs = call.service.yard.recipes.prepare(call.caller, call["name"], bodies)
    return {"runs": len(specs), "first": call.service.yard.plan(call.caller, specs[0])}


async def call_recipe(call: Call) -> Response:
    given = await call.json()
    requested = await request(call, call["name"], given)
    created = any(run.created for run in requested.runs)
    if grid.GROUP in given:
        ids = [run.id for run in requested.runs]
        return answer({"ids": ids, "created": sum(run.created for run in requested.runs)}, 201 if created else 200)
    (run,) = requested.runs
    url = place(requested)
    states = {run.id: "queued"} if created else await call.service.read(call.service.yard.run_states, [run.id])
    shown = {"id": run.id, "state": states[run.id], "url": url, "created": created}
    return answer(shown, 201 if created else 200, {"Location": url})


async def request(call: Call, name: str | None, body: dict[str, Any]) -> Requested:
    """Submit what the body describes: one run, or a group of runs."""
    bodies = configurations(call, body)
    key = call.headers.get("idempotency-key") or None
    yard = call.service.yard
    if call.is_small and yard.recipes.is_quick(name, bodies, key):
        return await asyncio.wrap_future(yard.recipes.request(call.caller, name, bodies))
    # The recipe is read and many parameters are checked before the commit: not on the event loop.
    future = await call.service.read(yard.recipes.request, call.caller, name, bodies, idempotency_key=key)
    return await asyncio.wrap_future(future)


def configurations(call: Call, body: dict[str, Any]) -> list[dict[str, Any]]:
    return grid.configurations(body, call.service.yard.settings.body_limit)


def place(requested: Requested) -> str:
    """The URL at which the runs of a request are shown, also to its sender."""
    ids = [run.id for run in requested.runs]
    below = f"{PREFIX}/recipes/{requested.recipe}/runs"
    return f"{below}/{ids[0]}" if len(ids) == 1 else f"{below}?ids={ids[0]}-{ids[-1]}&limit={min(len(ids), 1000)}"


async def list_requests(call: Call) -> Response:
    page = {"states": call["state"], "ids": parse_ids(call["ids"]), "before": call["before"], "limit": call["limit"]}
    found = await call.service.read(call.service.yard.recipes.runs, call.caller, call["name"], **page)
    return answer({"runs": found, "next": found[-1]["id"] if len(found) == call["limit"] else None})


async def get_request(call: Call) -> Response:
    yard = call.service.yard
    await call.service.read(yard.recipes.run, call.caller, call["name"], call["id"])
    if call["wait"]:
        await unless_gone(call.receive, wait_for_run(call.service, call["id"], call["wait"]))
    shown = await call.service.read(yard.recipes.run, call.caller, call["name"], call["id"])
    return answer({**shown, "outputs": await call.service.read(yard.outputs, call["id"])})


async def get_request_output(call: Call) -> ASGIApp:
    yard = call.service.yard
    await call.service.read(yard.recipes.run, call.caller, call["name"], call["id"])
    for output in await call.service.read(yard.outputs, call["id"]):
        if output["path"] == call["path"]:
            return await send_blob(call, output["digest"], call["path"].rpartition("/")[2])
    raise errors.NotFound(f"run {call['id']} has no output {call['path'][:200]!r}", "they are listed with the run")


NAME = path("name", NAME_SHAPE, "The recipe")
KEY = header("Idempotency-Key", "A repeated key returns the first runs")
PARAMS = Body(
    schema=ANYTHING,
    description='The parameters; with "_run_group_type": "grid" every list in them is an axis',
    example={"model": {"learning_rate": 0.001}},
)
PLANNED = record({"runs": integer("How many there would be", 1), "first": ref("Plan")})
REQUESTS = record({"runs": listed(ref("Request")), "next": or_null(integer("Ask for `before` this one for more", 1))})

ROUTES = (
    Route(
        method="GET", path="/recipes", handler=list_recipes, access=Access.CALLER, summary="List recipes",
        description="A caller sees the recipes that it may start.",
        answers=(Answer(description="Recipes", schema=record({"recipes": listed(ref("RecipeSummary"))})),),
    ),
    Route(
        method="GET", path="/recipes/{name}", handler=get_recipe, access=Access.VIEWER, parameters=(NAME,),
        summary="Show a recipe", answers=(Answer(description="The recipe", schema=ref("Recipe")),), errors=(404,),
    ),
    Route(
        method="PUT", path="/recipes/{name}", handler=put_recipe, access=Access.ADMIN,
        parameters=(
            NAME, query("default", {"type": "boolean", "default": False}, "Make it the default recipe"),
        ),
        summary="Add a recipe, or replace it",
        body=Body(schema=ref("RecipeSpec"), example={"command": ["python", "train.py", "{model.learning_rate}"]}),
        answers=(Answer(description="The recipe", schema=ref("Recipe")),),
    ),
    Route(
        method="DELETE", path="/recipes/{name}", handler=remove_recipe, access=Access.ADMIN, parameters=(NAME,),
        summary="Delete a recipe; its runs are kept", answers=(Answer(status=204, description="It is gone"),),
        errors=(404,),
    ),
    Route(
        method="POST", path="/recipes/{name}/test", handler=plan_recipe, access=Access.MEMBER, parameters=(NAME,),
        summary="What a request would start; nothing is stored", body=PARAMS,
        answers=(Answer(description="The plan of the first run", schema=PLANNED),), errors=(404, 422),
    ),
    Route(
        method="POST", path="/recipes/{name}/runs", handler=call_recipe, access=Access.REQUESTER,
        parameters=(NAME, KEY), summary="Start a recipe",
        description="Answers after the commit is on disk. Of a group, all runs are stored or none.", body=PARAMS,
        answers=(
            Answer(status=201, description="Stored", schema=ACCEPTED, headers=("Location",)),
            Answer(status=200, description="All were stored before, under this key", schema=ACCEPTED),
        ),
        errors=(404, 409, 422),
    ),
    Route(
        method="GET", path="/recipes/{name}/runs", handler=list_requests, access=Access.CALLER,
        parameters=(NAME, STATE, *PAGE), summary="List runs of a recipe, newest first",
        description="A caller sees its own.", errors=(404,),
        answers=(Answer(description="A page", schema=REQUESTS),),
    ),
    Route(
        method="GET", path="/recipes/{name}/runs/{id}", handler=get_request, access=Access.CALLER,
        parameters=(
            NAME, ID,
            query("wait", {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": 0},
                  "Seconds to wait for its end"),
        ),
        summary="Show the state of a request", description="A caller sees its own.",
        answers=(Answer(description="The request", schema=ref("FullRequest")),), errors=(404,),
    ),
    Route(
        method="GET", path="/recipes/{name}/runs/{id}/outputs/{path:rest}", handler=get_request_output,
        access=Access.CALLER, parameters=(NAME, ID, path("path", text(maxLength=4096), "As listed"), *PARTIAL),
        summary="Download a file of a request", answers=DOWNLOADS, errors=(404, 416),
    ),
)  # fmt: skip
