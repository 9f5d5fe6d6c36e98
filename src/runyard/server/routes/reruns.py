"""Runs that are started again, as new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from runyard.model import json_text
from runyard.model.python_env import SYNC
from runyard.model.rerun import Changes
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.check import check
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.routes.runs import ID, MOST_IDS
from runyard.server.schemas import ref
from runyard.server.schemas.build import ANYTHING, Schema, described, integer, listed, one_of, or_null, record
from runyard.server.schemas.common import NAME, RUN_ID
from runyard.yard.submit import Submitted


async def rerun(call: Call) -> Response:
    data = await call.bytes(call.service.yard.settings.body_limit)
    given = json_text.parse_object(data) if data else {}
    check(given, CHANGES, "body")
    (run,) = await _start(call, [call["id"]], given)
    url = f"{PREFIX}/runs/{run.id}"
    return answer({"id": run.id, "state": "queued", "url": url, "created": True}, 201, {"Location": url})


async def rerun_many(call: Call) -> Response:
    given = await call.json()
    check(given, MANY, "body")
    runs = await _start(call, given.pop("ids"), given)
    return answer({"ids": [run.id for run in runs], "created": len(runs)}, 201)


async def _start(call: Call, ids: Sequence[int], given: dict[str, Any]) -> list[Submitted]:
    """What the runs are made of is looked for first, which takes a while where there are many files."""
    changes = Changes.parse(given)
    accepted = await call.service.read(call.service.yard.reruns.start, call.caller, ids, changes)
    return await asyncio.wrap_future(accepted)


FIELDS: dict[str, Schema] = {
    "params": or_null(described(ANYTHING, "Parameters that change; `model.depth` is one within another")),
    "seed": or_null(integer("Another random seed", 0, (1 << 63) - 1)),
    "site": or_null(described(NAME, "Another site")),
    "python_env": or_null(one_of((SYNC,), "Build the Python environment that was recorded")),
}
CHANGES = record(FIELDS, required=[], description="What is to differ; nothing: the same run once more")
MANY = record({"ids": listed(RUN_ID, minItems=1, maxItems=MOST_IDS), **FIELDS}, required=["ids"])

ROUTES = (
    Route(
        method="POST", path="/runs/rerun", handler=rerun_many, access=Access.MEMBER,
        summary="Start many runs again, as new ones", description="All are stored or none.",
        body=Body(schema=MANY, example={"ids": [42, 43]}),
        answers=(
            Answer(
                status=201, description="Stored",
                schema=record({"ids": listed(RUN_ID), "created": integer("How many are new")}),
            ),
        ),
        errors=(404, 409, 422),
    ),
    Route(
        method="POST", path="/runs/{id}/rerun", handler=rerun, access=Access.MEMBER, parameters=(ID,),
        summary="Start a run again, as a new one",
        description="The same code, data, environment, parameters, seed and resources. Refused where one is gone.",
        body=Body(schema=CHANGES, example={"params": {"lr": 0.2}}, required=False),
        answers=(Answer(status=201, description="Stored", schema=ref("Submitted"), headers=("Location",)),),
        errors=(404, 409, 422),
    ),
)  # fmt: skip
