"""Runs: submit, list, show, wait, cancel, retry."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.responses import Response

from runyard import errors
from runyard.model import fields, selectors
from runyard.model.declaration import Declared, field, schema
from runyard.model.json_schema import Schema, integer, listed, or_null, record, text
from runyard.model.spec import EXAMPLE, RunSpec
from runyard.model.spec_values import RUN_NUMBER
from runyard.model.sweep.document import LONGEST_NAME
from runyard.model.values import Choice, Many
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.schemas import ref
from runyard.server.schemas.common import RUN_ID, RUN_STATE
from runyard.server.stream import unless_gone, wait_for_run
from runyard.yard.views import RunFilter

MOST_RUNS = 100_000  # in one call
PARSED_INLINE = 20  # specs that take less time to check than to hand to a thread
LONGEST_WAIT = 600

MOST_IDS = 10_000
HOW = Choice(("resume", "afresh"))

Outcomes = dict[int, dict[str, Any] | errors.RunyardError]


@dataclass(frozen=True, kw_only=True, slots=True)
class ManyRuns(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    ids: tuple[int, ...] = field(Many(RUN_NUMBER, least=1, most=MOST_IDS), help="Numbers of the runs")


@dataclass(frozen=True, kw_only=True, slots=True)
class ManyRetries(ManyRuns):
    checkpoints: str = field(
        HOW, default="", help="resume: refused if there is no checkpoint; afresh: checkpoints are discarded"
    )


async def submit(call: Call) -> Response:
    given = await call.json()
    if "runs" in given:
        return await _submit_many(call, given)
    spec = RunSpec.parse(given)
    (run,) = await asyncio.wrap_future(call.service.yard.submit(call.caller, [spec]))
    url = f"{PREFIX}/runs/{run.id}"
    if run.created:
        return answer({"id": run.id, "state": "queued", "url": url, "created": True}, 201, {"Location": url})
    states = await call.service.read(call.service.yard.run_states, [run.id])
    return answer({"id": run.id, "state": states[run.id], "url": url, "created": False}, 200, {"Location": url})


async def _submit_many(call: Call, given: dict[str, Any]) -> Response:
    items = _body_runs(given)
    specs = _parse_specs(items) if len(items) <= PARSED_INLINE else await call.service.read(_parse_specs, items)
    results = await asyncio.wrap_future(call.service.yard.submit(call.caller, specs))
    created = sum(result.created for result in results)
    return answer({"ids": [result.id for result in results], "created": created}, 201 if created else 200)


def _body_runs(given: dict[str, Any]) -> list[Any]:
    items = fields.mapping(given, "body", ("runs",))["runs"]
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_RUNS:
        raise errors.InvalidInput(f"runs: must be a list of 1 to {MOST_RUNS} runs")
    return items


def _parse_specs(items: list[Any]) -> list[RunSpec]:
    specs = []
    for index, item in enumerate(items):
        try:
            specs.append(RunSpec.parse(item))
        except errors.InvalidInput as error:
            raise type(error)(f"runs[{index}]: {error.message}", error.fix) from None
    return specs


async def plan(call: Call) -> Response:
    spec = await call.parse(RunSpec)
    return answer(await call.service.read(call.service.yard.plan, call.caller, spec))


async def list_runs(call: Call) -> Response:
    wanted = RunFilter(
        states=tuple(call["state"]),
        projects=tuple(call["project"]),
        owner=call["owner"],
        site=call["site"],
        tag=call["tag"],
        name=call["name"],
        recipe=call["recipe"],
        sweep=await _sweep(call),
        ids=parse_ids(call["ids"]),
        before=call["before"],
        limit=call["limit"],
    )
    found = await call.service.read(call.service.yard.list_runs, wanted)
    return answer({"runs": found, "next": found[-1]["id"] if len(found) == wanted.limit else None})


async def _sweep(call: Call) -> int | None:
    return None if call["sweep"] is None else await call.service.read(call.service.yard.sweeps.number_of, call["sweep"])


def parse_ids(words: list[str]) -> tuple[int, ...]:
    chosen = selectors.parse_selectors(words)
    if chosen.last:
        raise errors.InvalidInput("ids: 'last' is not a number", f"ask for {PREFIX}/runs/last")
    if chosen.sweeps:
        raise errors.InvalidInput(f"ids: {chosen.sweeps[0]!r} is not a number", f"ask for {PREFIX}/runs?sweep=…")
    if len(chosen.ids) > MOST_IDS:
        raise errors.InvalidInput(f"ids: {len(chosen.ids)} runs are more than {MOST_IDS}", "ask in several requests")
    return chosen.ids


async def last_run(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.last_run, call.caller))


async def get_run(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.get_run, call["id"]))


async def list_events(call: Call) -> Response:
    found = await call.service.read(call.service.yard.events, call["id"], call["after"], call["limit"])
    return answer({"events": found, "next": found[-1]["id"] if found else call["after"]})


async def wait(call: Call) -> Response:
    await call.service.read(call.service.yard.get_run, call["id"])
    return answer(await unless_gone(call.receive, wait_for_run(call.service, call["id"], call["timeout"])))


async def cancel(call: Call) -> Response:
    return await _one(call, call.service.yard.cancel(call.caller, [call["id"]]))


async def retry(call: Call) -> Response:
    return await _one(call, call.service.yard.retry(call.caller, [call["id"]], call["checkpoints"] or ""))


async def _one(call: Call, wish: Future[Outcomes]) -> Response:
    outcome = (await asyncio.wrap_future(wish))[call["id"]]
    if isinstance(outcome, errors.RunyardError):
        raise outcome
    return answer(outcome, 202)


async def cancel_many(call: Call) -> Response:
    return await _many(call.service.yard.cancel(call.caller, (await call.parse(ManyRuns)).ids))


async def retry_many(call: Call) -> Response:
    given = await call.parse(ManyRetries)
    return await _many(call.service.yard.retry(call.caller, given.ids, given.checkpoints))


async def _many(wish: Future[Outcomes]) -> Response:
    outcomes = await asyncio.wrap_future(wish)
    good = [outcome for outcome in outcomes.values() if not isinstance(outcome, errors.RunyardError)]
    bad = {
        str(run): error.to_json()["error"] for run, error in outcomes.items() if isinstance(error, errors.RunyardError)
    }
    return answer({"runs": good, "errors": bad}, 202)


ID = path("id", RUN_ID, "The run")
TIMEOUT = query("timeout", {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": 30}, "Seconds")
MANY_SPECS = record({"runs": listed(ref("RunSpec"), minItems=1, maxItems=MOST_RUNS)})
WISHES: Schema = record(
    {
        "runs": listed(ref("Run")),
        "errors": {
            "type": "object",
            "description": "Why it was refused, by run",
            "additionalProperties": record({"code": text(), "message": text(), "fix": text()}),
        },
    }
)
ACCEPTED: Schema = {
    "anyOf": [ref("Submitted"), record({"ids": listed(RUN_ID), "created": integer("How many are new")})]
}
NEWEST_FIRST = record({"runs": listed(ref("Run")), "next": or_null(integer("Ask for `before` this one for more", 1))})
EVENTS = record({"events": listed(ref("Event")), "next": integer("Ask for `after` this one for more")})
STATE = query("state", listed(RUN_STATE), "Only runs in these states")
PAGE = (
    query("ids", listed(text(pattern=r"^[0-9]{1,18}(-[0-9]{1,18})?$")), "Only these: numbers and ranges such as 3-9"),
    query("before", RUN_ID, "Only runs older than this one"),
    query("limit", {**integer("", 1, 1000), "default": 50}, "How many at most"),
)
FILTERS = (
    STATE,
    query("project", listed(text(maxLength=100)), "Only runs of these projects"),
    query("owner", text(maxLength=100), "Only runs of this user"),
    query("site", text(maxLength=100), "Only runs of this site"),
    query("tag", text(maxLength=100), "Only runs with this tag"),
    query("name", text(maxLength=200), "Only runs with exactly this name"),
    query("recipe", text(maxLength=100), "Only runs of this recipe"),
    query("sweep", text(maxLength=LONGEST_NAME), "Only runs of this sweep: 1, S1, or its name"),
    *PAGE,
)

ROUTES = (
    Route(
        method="POST", path="/runs", handler=submit, access=Access.MEMBER,
        summary="Submit one run, or many in one commit",
        description="Answers after the commit is on disk. Of many, all are stored or none.",
        body=Body(
            schema={"anyOf": [ref("RunSpec"), MANY_SPECS]}, description='A run, or {"runs": […]}', example=EXAMPLE
        ),
        answers=(
            Answer(status=201, description="Stored", schema=ACCEPTED, headers=("Location",)),
            Answer(status=200, description="All were stored before, under their idempotency keys", schema=ACCEPTED),
        ),
        errors=(409, 422),
    ),
    Route(
        method="GET", path="/runs", handler=list_runs, access=Access.VIEWER,
        summary="List runs, newest first", parameters=FILTERS,
        answers=(Answer(description="A page", schema=NEWEST_FIRST),), errors=(404, 409),
    ),
    Route(
        method="GET", path="/runs/last", handler=last_run, access=Access.VIEWER,
        summary="Your newest run", answers=(Answer(description="The run", schema=ref("FullRun")),), errors=(404,),
    ),
    Route(
        method="POST", path="/runs/cancel", handler=cancel_many, access=Access.MEMBER,
        summary="Cancel many runs", body=Body(schema=schema(ManyRuns), example={"ids": [42, 43]}),
        answers=(Answer(status=202, description="Requested, except for runs with an error", schema=WISHES),),
    ),
    Route(
        method="POST", path="/runs/retry", handler=retry_many, access=Access.MEMBER,
        summary="Retry many runs", body=Body(schema=schema(ManyRetries), example={"ids": [42, 43]}),
        answers=(Answer(status=202, description="Queued again, except for runs with an error", schema=WISHES),),
    ),
    Route(
        method="GET", path="/runs/{id}", handler=get_run, access=Access.VIEWER, parameters=(ID,),
        summary="Show a run", answers=(Answer(description="The run", schema=ref("FullRun")),), errors=(404,),
    ),
    Route(
        method="GET", path="/runs/{id}/events", handler=list_events, access=Access.VIEWER,
        summary="What happened to a run, oldest first",
        parameters=(
            ID,
            query("after", {**integer(), "maximum": 1 << 62, "default": 0}, "Only events newer than this one"),
            query("limit", {**integer("", 1, 10_000), "default": 500}, "How many at most"),
        ),
        answers=(Answer(description="A page", schema=EVENTS),), errors=(404,),
    ),
    Route(
        method="GET", path="/runs/{id}/wait", handler=wait, access=Access.VIEWER,
        summary="Wait for a run to end",
        description="Answers when the run has ended or after the timeout; check its state.",
        parameters=(ID, TIMEOUT),
        answers=(Answer(description="The run", schema=ref("FullRun")),), errors=(404,),
    ),
    Route(
        method="POST", path="/runs/{id}/cancel", handler=cancel, access=Access.MEMBER, parameters=(ID,),
        summary="Cancel a run", description="A request: the run is `cancelled` when no process of it is alive.",
        answers=(Answer(status=202, description="The run", schema=ref("Run")),), errors=(404, 409),
    ),
    Route(
        method="POST", path="/runs/{id}/retry", handler=retry, access=Access.MEMBER,
        parameters=(
            ID, query("checkpoints", HOW.schema(""), "Without it, the run continues from its checkpoint, if any")
        ),
        summary="Queue a run that has ended again",
        answers=(Answer(status=202, description="The run", schema=ref("Run")),), errors=(404, 409),
    ),
    Route(
        method="POST", path="/plan", handler=plan, access=Access.MEMBER,
        summary="What a submit would do; nothing is stored", body=Body(schema=ref("RunSpec"), example=EXAMPLE),
        answers=(Answer(description="The plan", schema=ref("Plan")),), errors=(422,),
    ),
)  # fmt: skip
