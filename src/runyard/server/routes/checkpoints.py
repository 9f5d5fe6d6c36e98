"""Checkpoints of runs. Their files are blobs, and so is the tree that lists them."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from runyard.model.json_schema import BOOLEAN, described, listed, record
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.route import Answer, Route
from runyard.server.routes.runs import ID, TIMEOUT
from runyard.server.schemas import ref
from runyard.server.stream import unless_gone, wait_for_checkpoint

SAVED = {"checkpoints": listed(ref("SavedCheckpoint"))}


async def list_checkpoints(call: Call) -> Response:
    return answer({"checkpoints": await call.service.read(call.service.yard.checkpoints.of_run, call["id"])})


async def bring_checkpoint(call: Call) -> Response:
    saved = call.service.yard.checkpoints
    wish = await asyncio.wrap_future(saved.ask(call["id"]))
    is_current = await unless_gone(call.receive, wait_for_checkpoint(call.service, call["id"], wish, call["timeout"]))
    return answer({"checkpoints": await call.service.read(saved.of_run, call["id"]), "current": is_current})


ROUTES = (
    Route(
        method="GET", path="/runs/{id}/checkpoints", handler=list_checkpoints, access=Access.VIEWER, parameters=(ID,),
        summary="List the checkpoints of a run, oldest first", errors=(404,),
        answers=(Answer(description="As far as it is kept", schema=record(SAVED)),),
    ),
    Route(
        method="POST", path="/runs/{id}/checkpoints", handler=bring_checkpoint, access=Access.VIEWER,
        summary="Collect the current checkpoint of a run from its site",
        description="For a running run. Answers when its site has sent it, or after the timeout.",
        parameters=(ID, TIMEOUT),
        answers=(
            Answer(
                description="As far as it is kept",
                schema=record({**SAVED, "current": described(BOOLEAN, "False: the newest is from an earlier time")}),
            ),
        ),
        errors=(404,),
    ),
)  # fmt: skip
