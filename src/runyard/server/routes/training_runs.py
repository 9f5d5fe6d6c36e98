"""The addresses of the Training Runs server, beside the API: whatever posted to it starts recipes here."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import RedirectResponse, Response

from runyard.bridges.training_runs import answers, grid
from runyard.model.roles import Caller
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.gate import check_origin
from runyard.server.parameters import path
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.routes.recipes import place, request
from runyard.server.schemas.build import ANYTHING
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
    """Browsers are led to the documentation; programs that ask for JSON get the status, as they always did."""
    if "application/json" in call.headers.get("accept", "").lower():
        caller = call.service.gate.admit(call.scope, Access.CALLER)
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


STARTED = Answer(description="As the old server, and id or ids and url", schema=ANYTHING)
STATUS = Answer(description="Tasks by worker, as Celery's inspection gives them", schema=ANYTHING)
CONFIGURATION = Body(schema=ANYTHING, description="A run configuration, or a grid of them")


def _starting(method: str, where: str) -> Route:
    return Route(
        method=method, path=where, handler=start_default, access=Access.REQUESTER, body=CONFIGURATION,
        summary="Start the default recipe", answers=(STARTED,),
    )  # fmt: skip


def _starting_named(method: str) -> Route:
    return Route(
        method=method, path="/request/{name}", handler=start_named, access=Access.REQUESTER, body=CONFIGURATION,
        summary="Start a recipe", answers=(STARTED,), parameters=(path("name", NAME, "The recipe"),),
    )  # fmt: skip


ROUTES = (
    *(_starting(method, where) for where in ("/", "/request") for method in ("POST", "PUT")),
    *(_starting_named(method) for method in ("POST", "PUT")),
    Route(method="GET", path="/", handler=show_front, access=Access.PUBLIC, summary="Documentation or status",
          answers=(STATUS,)),
    Route(method="GET", path="/status", handler=show_status, access=Access.CALLER, summary="What is going on",
          answers=(STATUS,)),
)  # fmt: skip
