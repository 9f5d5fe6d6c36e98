"""Sweeps: submit, show, cancel, retry, and replay their decisions."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.responses import Response

from runyard.model.declaration import Declared, field, schema
from runyard.model.json_schema import integer, listed, one_of, or_null, record, text
from runyard.model.metrics import LONGEST_NAME as LONGEST_METRIC
from runyard.model.states import RunState
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.document import LONGEST_NAME
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.model.values import Choice, Many
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.common import SWEEP_ID

MOST = 1000  # in one page


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRetry(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    states: tuple[str, ...] = field(
        Many(Choice((RunState.FAILED, RunState.CANCELLED)), least=1), default=(RunState.FAILED,),
        help="Which of its runs; without it, those that failed. Runs that were stopped early have a result",
    )  # fmt: skip


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
    objective = Objective.parse(judged) if call["metric"] else None
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
    states = (await call.parse(SweepRetry)).states
    future = call.service.yard.sweeps.retry(call.caller, call["id"], states)
    return answer(await asyncio.wrap_future(future), 202)


ID = path("id", SWEEP_ID, "Number of the sweep: 1 for S1")
NEXT = or_null(integer("Pass this to get the next page; null: there is none", 1))
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
        summary="Submit a sweep, or the missing runs of an existing one",
        description="A sweep is identified by its owner, project and name, or else by its command, space, method, seed "
        "and objective. If it exists, only missing configurations and repetitions are added, and runs that failed or "
        "were cancelled are started again. All is stored in one commit, or nothing.",
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
            query("owner", text(maxLength=100), "Only sweeps of this user"),
            query("name", NAME, "Only sweeps with exactly this name"),
            query("before", SWEEP_ID, "Only sweeps older than this one"),
            query("limit", {**integer("", 1, 1000), "default": 50}, "How many at most"),
        ),
        answers=(Answer(description="A page", schema=record({"sweeps": listed(ref("Sweep")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/named", handler=named_sweep, access=Access.VIEWER,
        parameters=(query("name", NAME, "The exact name", required=True),), summary="The sweep of this name",
        description="404 suggests similar names; 409 lists the numbers if several sweeps have this name.",
        answers=(Answer(description="The sweep", schema=ref("Sweep")),), errors=(404, 409),
    ),
    Route(
        method="GET", path="/sweeps/{id}", handler=get_sweep, access=Access.VIEWER, parameters=(ID,),
        summary="Show a sweep", answers=(Answer(description="The sweep", schema=ref("Sweep")),), errors=(404,),
    ),
    Route(
        method="GET", path="/sweeps/{id}/trials", handler=list_trials, access=Access.VIEWER,
        summary="The configurations of a sweep, in the order in which they were created",
        parameters=(
            ID, AFTER, LIMIT,
            query("metric", text(maxLength=LONGEST_METRIC), "Metric to compare by; without it, the sweep's own"),
            query("goal", {**one_of(list(Goal)), "default": Goal.MINIMIZE}, "Minimize or maximize the metric"),
            query("at", {**one_of(list(At)), "default": At.LAST}, "Which of a run's values counts"),
        ),
        errors=(404,),
        answers=(Answer(description="A page", schema=record({"trials": listed(ref("Trial")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/{id}/decisions", handler=list_decisions, access=Access.VIEWER,
        summary="The decisions of a sweep with the values they used, oldest first",
        parameters=(ID, AFTER, LIMIT), errors=(404,),
        answers=(Answer(description="A page", schema=record({"decisions": listed(ref("Decision")), "next": NEXT})),),
    ),
    Route(
        method="GET", path="/sweeps/{id}/replay", handler=replay_sweep, access=Access.VIEWER, parameters=(ID,),
        summary="Compute all decisions of a sweep again from its log, and compare",
        answers=(Answer(description="What differs", schema=ref("Replay")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sweeps/{id}/cancel", handler=cancel_sweep, access=Access.MEMBER, parameters=(ID,),
        summary="Create no more runs of a sweep, and cancel the existing ones",
        description="A request, as for a single run.",
        answers=(Answer(status=202, description="The sweep", schema=ref("Sweep")),), errors=(404,),
    ),
    Route(
        method="POST", path="/sweeps/{id}/retry", handler=retry_sweep, access=Access.MEMBER, parameters=(ID,),
        summary="Retry runs of a sweep", body=Body(schema=schema(SweepRetry), example={"states": ["failed"]}),
        answers=(
            Answer(
                status=202, description="Queued again",
                schema=record({"id": SWEEP_ID, "retried": integer("How many")}),
            ),
        ),
        errors=(404, 409),
    ),
)  # fmt: skip
