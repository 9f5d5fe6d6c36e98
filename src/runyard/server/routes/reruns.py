"""Runs that are started again, as new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from runyard.model import json_text
from runyard.model import rerun as reruns
from runyard.model.declaration import declared, schema
from runyard.model.json_schema import TEXTS, Schema, described, integer, listed, or_null, record
from runyard.model.rerun import Changes
from runyard.model.spec import RunSpec
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.route import PREFIX, Answer, Body, Route
from runyard.server.routes.runs import ID, ManyRuns
from runyard.server.schemas.common import RUN_ID
from runyard.server.schemas.runs import SUBMITTED
from runyard.yard.runs.submit import Submitted


async def rerun(call: Call) -> Response:
    data = await call.bytes(call.service.yard.settings.body_limit)
    given = json_text.parse_object(data) if data else {}
    (run,), (notes,) = await _start(call, [call["id"]], given)
    url = f"{PREFIX}/runs/{run.id}"
    shown = {"id": run.id, "state": "queued", "url": url, "created": True, "notes": notes}
    return answer(shown, 201, {"Location": url})


async def rerun_many(call: Call) -> Response:
    given = await call.json()
    ids = ManyRuns.parse({"ids": given.pop("ids", None)}).ids
    runs, notes = await _start(call, ids, given)
    return answer({"ids": [run.id for run in runs], "created": len(runs), "notes": notes}, 201)


async def _start(call: Call, ids: Sequence[int], given: dict[str, Any]) -> tuple[list[Submitted], list[list[str]]]:
    """The inputs of the runs are checked first, which takes a while if there are many files."""
    changes = Changes.parse(given)
    started = await call.service.read(call.service.yard.reruns.start, call.caller, ids, changes)
    return await asyncio.wrap_future(started.runs), started.notes


_SPEC = declared(RunSpec)
FIELDS: dict[str, Schema] = {name: or_null(value.schema(_SPEC[name].rerun)) for name, value in reruns.VALUES.items()}
NOTES = described(TEXTS, "What cannot be the same as in the first run, as text")
STARTED = record({**SUBMITTED["properties"], "notes": NOTES})
CHANGES = record(FIELDS, required=[], description="Values that differ; without any, the same run again")
MANY = record({**schema(ManyRuns)["properties"], **FIELDS}, required=["ids"])

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
        description="The same code, data, parameters, seed and resources. Refused if one is missing; `notes` say what "
        "cannot be the same: code without a snapshot, an environment that was only recorded.",
        body=Body(schema=CHANGES, example={"params": {"lr": 0.2}}, required=False),
        answers=(Answer(status=201, description="Stored", schema=STARTED, headers=("Location",)),),
        errors=(404, 409, 422),
    ),
)  # fmt: skip
