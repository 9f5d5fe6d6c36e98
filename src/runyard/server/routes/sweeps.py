"""Sweeps: hand in, look at, cancel, retry, and make their decisions again."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from starlette.responses import Response

from runyard.model.metrics import LONGEST_NAME as LONGEST_METRIC
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.document import LONGEST_NAME
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.check import check
from runyard.server.parameters import path, query
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.build import integer, listed, one_of, or_null, record, text
from runyard.server.schemas.common import SWEEP_ID

MOST = 1000  # in one page


async def submit_sweep(call: Call) -> Response:
    given = await call.json()
    accepted = await call.service.read(_submit, call, given)
    done = await asyncio.wrap_future(accepted)
    return answer(done, 201, {"Location": f"{PREFIX}/sweeps/{done['id']}"})


def _submit(call: Call, given: dict[str, Any]) -> Future[dict[str, Any]]:
    """In a thread: thousands of configurations take a while to list."""
    return call.service.yard.sweeps.submit(call.caller, SweepSpec.parse(given))


async def plan_sweep(call: Call) -> Response:
    given = await call.json()
    return answer(await call.service.read(_plan, call, given))


def _plan(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    return call.service.yard.sweeps.plan(call.caller, SweepSpec.parse(given))


async def list_sweeps(call: Call) -> Response:
    wanted = {name: call[name] for name in ("project", "owner", "name", "before", "limit")}
    found = await call.service.read(call.service.yard.sweeps.every, **wanted)
    return answer({"sweeps": found, "next": found[-1]["id"] if len(found) == call["limit"] else None})


async def get_sweep(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.sweeps.get, call["id"]))


async def named_sweep(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.sweeps.named, call["name"]))


async def list_trials(call: Call) -> Response:
    judged = {name: call[name] for name in ("metric", "goal", "at")}
    objective = Objective.parse({"objective": judged}) if call["metric"] else None
    found = await call.service.read(
        call.service.yard.sweeps.trials, call["id"], call["after"], call["limit"], objective
    )
    return answer({"trials": found, "next": found[-1]["number"] if len(found) == call["limit"] else None})


async def list_decisions(call: Call) -> Response:
    found = await call.service.read(call.service.yard.sweeps.decisions, call["id"], call["after"], call["limit"])
    return answer({"decisions": found, "next": found[-1]["number"] if len(found) == call["limit"] else None})


async def replay_sweep(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.sweeps.replay, call["id"]))


async def cancel_sweep(call: Call) -> Response:
    return answer(await call.service.write(call.service.yard.sweeps.cancel, call.caller, call["id"]), 202)


async def retry_sweep(call: Call) -> Response:
    given = await call.json()
    check(given, STATES, "body")
    future = call.service.yard.sweeps.retry(call.caller, call["id"], given.get("states") or ["failed"])
    return answer(await asyncio.wrap_future(future), 202)


ID = path("id", SWEEP_ID, "The sweep: 1 for what people write as S1")
STATES = record(
    {"states": or_null(listed(one_of(("failed", "cancelled")), minItems=1))},
    required=[],
    description="Which of its runs; without it, those that have failed. Those that were stopped early have a result.",
)
NEXT = or_null(integer("Ask for more with this one; null: there is no more", 1))
EXAMPLE = {
    "command": ["python", "train.py", "--lr", "{lr}", "--width", "{width}"],
    "space": {"lr": [0.1, 0.01], "width": [64, 128]},
    "reps": 3,
    "minimize": "val/loss",
}
AFTER = query("after", {**integer(), "maximum": 1 << 31, "default": 0}, "Only those after this one")
NAME = text(maxLength=LONGEST_NAME)
LIMIT = query("limit", {**integer("", 1, MOST), "default": 100}, "How many at most")

ROUTES = (
    Route(
        method="POST", path="/sweeps", handler=submit_sweep, access=Access.MEMBER,
        summary="Hand in a sweep, or what is missing of one that is known",
        description="A sweep is known by its owner, project and name, or else by its command, space, method, seed and "
        "objective. Then only configurations and repetitions are added that it does not have, and runs that have "
        "failed or were cancelled are started again. All is stored in one commit, or nothing.",
        body=Body(schema=ref("SweepSpec"), example=EXAMPLE),
        answers=(Answer(status=201, description="Stored", schema=ref("SubmittedSweep"), headers=("Location",)),),
        errors=(409, 422),
    ),
    Route(
        method="POST", path="/sweeps/plan", handler=plan_sweep, access=Access.MEMBER,
        summary="What a sweep would be; nothing is stored", body=Body(schema=ref("SweepSpec"), example=EXAMPLE),
        answers=(Answer(description="The plan", schema=ref("PlannedSweep")),), errors=(409, 422),
    ),
    Route(
        method="GET", path="/sweeps", handler=list_sweeps, access=Access.VIEWER,
        summary="List sweeps, newest first",
        parameters=(
            query("project", text(maxLength=100), "Only sweeps of this project"),
            query("owner", text(maxLength=100), "Only sweeps of this person"),
            query("name", NAME, "Only sweeps with exactly this name"),
            query("before", SWEEP_ID, "Only sweeps older than this one"),
            query("limit", {**integer("", 1, 1000), "default": 50}, "How many at most"),
        ),
        answers=(Answer(description="A page", schema=record({"sweeps": listed(ref("Sweep")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/named", handler=named_sweep, access=Access.VIEWER,
        parameters=(query("name", NAME, "Exactly as it is called", required=True),), summary="The sweep of this name",
        description="404 names those that are called alike, 409 the numbers where several are called so.",
        answers=(Answer(description="The sweep", schema=ref("Sweep")),), errors=(404, 409),
    ),
    Route(
        method="GET", path="/sweeps/{id}", handler=get_sweep, access=Access.VIEWER, parameters=(ID,),
        summary="Show a sweep", answers=(Answer(description="The sweep", schema=ref("Sweep")),), errors=(404,),
    ),
    Route(
        method="GET", path="/sweeps/{id}/trials", handler=list_trials, access=Access.VIEWER,
        summary="The configurations of a sweep, in the order in which they were made",
        parameters=(
            ID, AFTER, LIMIT,
            query("metric", text(maxLength=LONGEST_METRIC), "By this one; without it, by the sweep's own"),
            query("goal", {**one_of(list(Goal)), "default": Goal.MINIMIZE}, "Whether it is to become small or large"),
            query("at", {**one_of(list(At)), "default": At.LAST}, "Which of a run's values counts"),
        ),
        errors=(404,),
        answers=(Answer(description="A page", schema=record({"trials": listed(ref("Trial")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/{id}/decisions", handler=list_decisions, access=Access.VIEWER,
        summary="What was decided about a sweep, and by which values; oldest first",
        parameters=(ID, AFTER, LIMIT), errors=(404,),
        answers=(Answer(description="A page", schema=record({"decisions": listed(ref("Decision")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/{id}/replay", handler=replay_sweep, access=Access.VIEWER, parameters=(ID,),
        summary="Make all decisions of a sweep again from its log, and compare",
        answers=(Answer(description="What differs", schema=ref("Replay")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sweeps/{id}/cancel", handler=cancel_sweep, access=Access.MEMBER, parameters=(ID,),
        summary="Make no more runs of a sweep, and end those that are there",
        description="A wish: see the cancelling of a run.",
        answers=(Answer(status=202, description="The sweep", schema=ref("Sweep")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sweeps/{id}/retry", handler=retry_sweep, access=Access.MEMBER, parameters=(ID,),
        summary="Start runs of a sweep once more", body=Body(schema=STATES, example={"states": ["failed"]}),
        answers=(
            Answer(
                status=202, description="Queued again",
                schema=record({"id": SWEEP_ID, "retried": integer("How many")}),
            ),
        ),
        errors=(404, 409),
    ),
)  # fmt: skip
