"""For agents that look into drop boxes: runs of people who have no token, see `runyard.yard.drop_boxes`."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard import errors
from runyard.model.spec import RunSpec
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.check import check
from runyard.server.parameters import path, query
from runyard.server.route import Answer, Body, Route
from runyard.server.routes.agents import SITE
from runyard.server.routes.runs import MOST_IDS
from runyard.server.schemas import ref
from runyard.server.schemas.build import BOOLEAN, integer, listed, record, text
from runyard.server.schemas.common import NAME, RUN_ID
from runyard.yard.drop_boxes import DropBoxes

LONGEST_PIECE = 4 << 20  # bytes of a log in one answer


def _boxes(call: Call) -> DropBoxes:
    return DropBoxes(call.service.yard, call.caller, call["site"])


async def hand_in(call: Call) -> Response:
    boxes, given = _boxes(call), await call.json()
    check(given, SHAPE, "body")  # what is in the run, its parser says better
    spec = RunSpec.parse(given["run"])
    submitted = await call.service.read(boxes.submit, given["owner"], given["key"], spec)  # it looks at files first
    (run,) = await asyncio.wrap_future(submitted)
    return answer({"id": run.id, "created": run.created}, 201 if run.created else 200)


async def look(call: Call) -> Response:
    boxes, given = _boxes(call), await call.json()
    check(given, ASKED, "body")
    return answer({"runs": await call.service.read(boxes.runs, given["ids"])})


async def read_log(call: Call) -> Response:
    data = await call.service.read(_boxes(call).log, call["id"], call["offset"], LONGEST_PIECE)
    return Response(data, media_type=OCTETS, headers={"Cache-Control": "no-store"})


async def list_outputs(call: Call) -> Response:
    return answer({"outputs": await call.service.read(_boxes(call).outputs, call["id"])})


async def cancel(call: Call) -> Response:
    wished = await call.service.read(_boxes(call).cancel, call["id"])
    outcome = (await asyncio.wrap_future(wished))[call["id"]]
    if isinstance(outcome, errors.RunyardError):
        raise outcome
    return answer(outcome, 202)


OCTETS = "application/octet-stream"
ID = path("id", RUN_ID, "The run")
FOR_WHOM = {"owner": NAME, "key": text(pattern=r"^[0-9A-Za-z_-]{8,64}$")}
HANDED_IN, SHAPE = record({**FOR_WHOM, "run": ref("RunSpec")}), record({**FOR_WHOM, "run": {"type": "object"}})
ASKED = record({"ids": listed(RUN_ID, minItems=1, maxItems=MOST_IDS)})
STORED = record({"id": RUN_ID, "created": BOOLEAN})

ROUTES = (
    Route(
        method="POST", path="/agents/drop-boxes/runs", handler=hand_in, access=Access.AGENT,
        summary="Submit a run for somebody who has put it into a drop box of the site",
        description="The same key always means the same run. The yard's admin names the sites in `spool_sites`.",
        parameters=(SITE,), body=Body(schema=HANDED_IN),
        answers=(
            Answer(status=201, description="Stored", schema=STORED),
            Answer(status=200, description="It was stored before", schema=STORED),
        ),
        errors=(409, 422),
    ),
    Route(
        method="POST", path="/agents/drop-boxes/look", handler=look, access=Access.AGENT, operation="look_at_handed_in",
        summary="How runs from drop boxes of the site are doing", parameters=(SITE,), body=Body(schema=ASKED),
        answers=(Answer(description="Those that exist", schema=record({"runs": listed(ref("Run"))})),),
    ),
    Route(
        method="GET", path="/agents/drop-boxes/runs/{id}/log", handler=read_log, access=Access.AGENT,
        operation="read_log_of_handed_in", summary="A piece of the log of a run from a drop box",
        parameters=(SITE, ID, query("offset", {**integer("", 0, 1 << 62), "default": 0}, "First byte")),
        answers=(
            Answer(
                description="At most 4 MiB; empty at the end", schema={"type": "string", "format": "binary"},
                media_type=OCTETS,
            ),
        ),
        errors=(404,),
    ),
    Route(
        method="GET", path="/agents/drop-boxes/runs/{id}/outputs", handler=list_outputs, access=Access.AGENT,
        operation="list_outputs_of_handed_in", summary="List the files that a run from a drop box left",
        parameters=(SITE, ID), errors=(404,),
        answers=(Answer(description="The files", schema=record({"outputs": listed(ref("Output"))})),),
    ),
    Route(
        method="POST", path="/agents/drop-boxes/runs/{id}/cancel", handler=cancel, access=Access.AGENT,
        operation="cancel_handed_in", summary="Ask for a run from a drop box to be ended", parameters=(SITE, ID),
        answers=(Answer(status=202, description="The run", schema=ref("Run")),), errors=(404, 409),
    ),
)  # fmt: skip
