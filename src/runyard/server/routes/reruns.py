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
from runyard.server.schemas.build import ANYTHING, TEXTS, Schema, described, integer, listed, one_of, or_null, record
from runyard.server.schemas.common import NAME, RUN_ID
from runyard.server.schemas.runs import SUBMITTED
from runyard.yard.submit import Submitted


async def rerun(call: Call) -> Response:
    data = await call.bytes(call.service.yard.settings.body_limit)
    given = json_text.parse_object(data) if data else {}
    check(given, CHANGES, "body")
    (run,), (notes,) = await _start(call, [call["id"]], given)
    url = f"{PREFIX}/runs/{run.id}"
    shown = {"id": run.id, "state": "queued", "url": url, "created": True, "notes": notes}
    return answer(shown, 201, {"Location": url})


async def rerun_many(call: Call) -> Response:
    given = await call.json()
    check(given, MANY, "body")
    runs, notes = await _start(call, given.pop("ids"), given)
    return answer({"ids": [run.id for run in runs], "created": len(runs), "notes": notes}, 201)


async def _start(call: Call, ids: Sequence[int], given: dict[str, Any]) -> tuple[list[Submitted], list[list[str]]]:
    """What the runs are made of is looked for first, which takes a while where there are many files."""
    changes = Changes.parse(given)
    started = await call.service.read(call.service.yard.reruns.start, call.caller, ids, changes)
    return await asyncio.wrap_future(started.runs), started.notes


FIELDS: dict[str, Schema] = {
    "params": or_null(described(ANYTHING, "Parameters that change; `model.depth` is one within another")),
    "seed": or_null(integer("Another random seed", 0, (1 << 63) - 1)),
    "site": or_null(described(NAME, "Another site")),
    "python_env": or_null(one_of((SYNC,), "Build the Python environment that was recorded")),
}
NOTES = described(TEXTS, "What of it cannot be as it was, for people")
STARTED = record({**SUBMITTED["properties"], "notes": NOTES})
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
                schema=record(
                    {"ids": listed(RUN_ID), "created": integer("How many are new"), "notes": listed(NOTES)},
                    description="`notes` are in the order of `ids`",
                ),
            ),
        ),
        errors=(404, 409, 422),
    ),
    Route(
        method="POST", path="/runs/{id}/rerun", handler=rerun, access=Access.MEMBER, parameters=(ID,),
        summary="Start a run again, as a new one",
        description="The same code, data, parameters, seed and resources. Refused where one is gone; `notes` say what "
        "cannot be the same: code without a snapshot, an environment that was only recorded.",
        body=Body(schema=CHANGES, example={"params": {"lr": 0.2}}, required=False),
        answers=(Answer(status=201, description="Stored", schema=STARTED, headers=("Location",)),),
        errors=(404, 409, 422),
    ),
)  # fmt: skip
