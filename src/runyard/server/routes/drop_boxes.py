"""For agents that watch drop boxes: runs of users without a token, see `runyard.yard.incoming.drop_boxes`."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response

from runyard import errors
from runyard.model.declaration import Declared, field, schema
from runyard.model.json_schema import BOOLEAN, integer, listed, record, text
from runyard.model.spec import RunSpec
from runyard.model.spec_values import NAME
from runyard.model.values import Checked, Part
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import Answer, Body, Route
from runyard.server.routes.agents import SITE
from runyard.server.routes.runs import ManyRuns
from runyard.server.schemas import ref
from runyard.server.schemas.common import RUN_ID
from runyard.yard.incoming.drop_boxes import DropBoxes

LONGEST_PIECE = 4 << 20  # bytes of a log in one answer
KEY = re.compile("[0-9A-Za-z_-]{8,64}")


def _key(value: object, where: str) -> str:
    if not isinstance(value, str) or not KEY.fullmatch(value):
        raise errors.InvalidInput(f"{where}: {str(value)[:80]!r} is not a key", "use 8 to 64 letters, digits, '_', '-'")
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class FromDropBox(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    owner: str = field(NAME, help="The user who put it into the drop box")
    key: str = field(Checked(_key, text(pattern=f"^{KEY.pattern}$")), help="Identifies the bundle")
    run: RunSpec = field(Part(RunSpec))


def _boxes(call: Call) -> DropBoxes:
    return DropBoxes(call.service.yard, call.caller, call["site"])


async def hand_in(call: Call) -> Response:
    boxes, given = _boxes(call), await call.parse(FromDropBox)
    submitted = await call.service.read(boxes.submit, given.owner, given.key, given.run)  # it looks at files first
    (run,) = await asyncio.wrap_future(submitted)
    return answer({"id": run.id, "created": run.created}, 201 if run.created else 200)


async def look(call: Call) -> Response:
    boxes, asked = _boxes(call), await call.parse(ManyRuns)
    return answer({"runs": await call.service.read(boxes.runs, asked.ids)})


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
STORED = record({"id": RUN_ID, "created": BOOLEAN})

ROUTES = (
    Route(
        method="POST", path="/agents/drop-boxes/runs", handler=hand_in, access=Access.AGENT,
        summary="Submit a run for the user who put it into a drop box of the site",
        description="The same key always means the same run. The yard's admin names the sites in `spool_sites`.",
        parameters=(SITE,), body=Body(schema=schema(FromDropBox)),
        answers=(
            Answer(status=201, description="Stored", schema=STORED),
            Answer(status=200, description="It was stored before", schema=STORED),
        ),
        errors=(409, 422),
    ),
    Route(
        method="POST", path="/agents/drop-boxes/look", handler=look, access=Access.AGENT, operation="look_at_handed_in",
        summary="The state of runs from drop boxes of the site", parameters=(SITE,), body=Body(schema=schema(ManyRuns)),
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
        operation="list_outputs_of_handed_in", summary="List the outputs of a run from a drop box",
        parameters=(SITE, ID), errors=(404,),
        answers=(Answer(description="The files", schema=record({"outputs": listed(ref("Output"))})),),
    ),
    Route(
        method="POST", path="/agents/drop-boxes/runs/{id}/cancel", handler=cancel, access=Access.AGENT,
        operation="cancel_handed_in", summary="Cancel a run from a drop box", parameters=(SITE, ID),
        answers=(Answer(status=202, description="The run", schema=ref("Run")),), errors=(404, 409),
    ),
)  # fmt: skip
