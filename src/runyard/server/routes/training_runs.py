"""The paths of the Training Runs server, outside the API: programs that posted to it start recipes here."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from starlette.responses import RedirectResponse, Response

from runyard.bridges.training_runs import answers, grid
from runyard.model.json_schema import ANYTHING
from runyard.model.roles import Caller
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.authentication import check_origin
from runyard.server.call import Call
from runyard.server.parameters import path
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.routes.recipes import KEY, place, request
from runyard.server.schemas import training_runs as shapes
from runyard.server.schemas.common import NAME
from runyard.yard import Yard

MOST_SHOWN = 1000  # tasks in one list of the status


async def start_default(call: Call) -> Response:
    return await _start(call, None)


async def start_named(call: Call) -> Response:
    return await _start(call, call["name"])


async def _start(call: Call, recipe: str | None) -> Response:
    check_origin(call.scope)
    given = await call.json()
    requested = await request(call, recipe, given)
    ids = [run.id for run in requested.runs]
    return answer(answers.accepted(given, time.time(), place(requested), ids, group=grid.GROUP in given))


async def show_status(call: Call) -> Response:
    return answer(await call.service.read(_status, call.service.yard, call.caller))


async def show_front(call: Call) -> Response:
    """Browsers are redirected to the documentation; programs that accept JSON get the status, as before."""
    if "application/json" in call.headers.get("accept", "").lower():
        caller = await call.service.gate.admit(call.scope, Access.CALLER)
        return answer(await call.service.read(_status, call.service.yard, caller))
    return RedirectResponse(f"{PREFIX}/docs")


def _status(yard: Yard, caller: Caller) -> dict[str, Any]:
    load, counts = yard.workload(MOST_SHOWN), yard.counts()
    names = [recipe["name"] for recipe in yard.recipes.every(caller)]
    return answers.status(
        workers={agent: names for agent in load.agents},
        queued=load.queued,
        scheduled=load.blocked,
        active=load.active,
        counts={name: counts[name] for name in ("queued", "starting", "running")},
        shows=lambda run: caller.may_see(run["owner"]),
    )


STARTED = Answer(description="As the old server's, with id or ids and url", schema=shapes.STARTED)
STATUS = Answer(description="Tasks by worker, as Celery's inspection gives them", schema=shapes.STATUS)
DOCUMENTATION = Answer(status=307, description="To the documentation", headers=("Location",))
CONFIGURATION = Body(
    schema=ANYTHING,
    description="A run configuration, or a grid of them; read as JSON whatever the Content-Type says",
    example={"model": {"learning_rate": 0.001}},
)


def _starting(method: str, where: str, operation: str) -> Route:
    return Route(
        method=method, prefix="", path=where, handler=start_default, access=Access.REQUESTER, body=CONFIGURATION,
        summary="Start the default recipe, as the Training Runs server did", answers=(STARTED,),
        parameters=(KEY,), errors=(404, 409, 422), operation=f"{operation}_by_{method.lower()}",
    )  # fmt: skip


def _starting_named(method: str) -> Route:
    return dataclasses.replace(
        _starting(method, "/request/{name}", "start_named"),
        handler=start_named,
        summary="Start a recipe, as the Training Runs server did",
        parameters=(path("name", NAME, "The recipe"), KEY),
    )


ROUTES = (
    *(_starting(method, "/", "start_at_front") for method in ("POST", "PUT")),
    *(_starting(method, "/request", "start_default") for method in ("POST", "PUT")),
    *(_starting_named(method) for method in ("POST", "PUT")),
    Route(
        method="GET", prefix="", path="/", handler=show_front, access=Access.PUBLIC, errors=(401,),
        summary="The documentation, or the status for clients that accept JSON", answers=(STATUS, DOCUMENTATION),
    ),
    Route(
        method="GET", prefix="", path="/status", handler=show_status, access=Access.CALLER,
        summary="Waiting and running tasks, in the format of the Training Runs server", answers=(STATUS,),
    ),
)  # fmt: skip
