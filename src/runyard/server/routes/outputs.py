"""Outputs of runs. A path is looked up among the recorded ones; it never becomes a path on this machine."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard import errors
from runyard.model.json_schema import BOOLEAN, Schema, described, listed, record, text
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.files import send_blob
from runyard.server.parameters import header, path
from runyard.server.route import Answer, Route
from runyard.server.routes.runs import ID, TIMEOUT
from runyard.server.schemas import ref
from runyard.server.stream import unless_gone, wait_for_outputs

FILE: Schema = {"type": "string", "format": "binary"}
OCTETS = "application/octet-stream"
DOWNLOADS = (
    Answer(description="The file", schema=FILE, media_type=OCTETS, headers=("ETag", "Content-Disposition")),
    Answer(
        status=206,
        description="The part of the Range header",
        schema=FILE,
        media_type=OCTETS,
        headers=("Content-Range",),
    ),
    Answer(status=304, description="The client has it already"),
)
PARTIAL = (
    header("Range", "bytes=a-b, bytes=a- or bytes=-n"),
    header("If-Range", "The ETag that the range belongs to"),
    header("If-None-Match", "An ETag that the client has"),
)


async def list_outputs(call: Call) -> Response:
    return answer({"outputs": await call.service.read(call.service.yard.outputs, call["id"])})


async def bring_outputs(call: Call) -> Response:
    wish = await asyncio.wrap_future(call.service.yard.ask_outputs(call["id"]))
    is_current = await unless_gone(call.receive, wait_for_outputs(call.service, call["id"], wish, call["timeout"]))
    return answer({"outputs": await call.service.read(call.service.yard.outputs, call["id"]), "current": is_current})


async def get_output(call: Call) -> ASGIApp:
    wanted = call["path"]
    for output in await call.service.read(call.service.yard.outputs, call["id"]):
        if output["path"] == wanted:
            return await send_blob(call, output["digest"], wanted.rpartition("/")[2])
    raise errors.NotFound(
        f"run {call['id']} has no output {wanted[:200]!r}", f"list them at /runs/{call['id']}/outputs"
    )


ROUTES = (
    Route(
        method="POST", path="/runs/{id}/outputs", handler=bring_outputs, access=Access.VIEWER,
        summary="Collect the current outputs of a run from its site",
        description="For a running run. Answers when its site has sent them, or after the timeout.",
        parameters=(ID, TIMEOUT),
        answers=(
            Answer(
                description="The files",
                schema=record(
                    {
                        "outputs": listed(ref("Output")),
                        "current": described(BOOLEAN, "False: these are from an earlier time"),
                    }
                ),
            ),
        ),
        errors=(404,),
    ),
    Route(
        method="GET", path="/runs/{id}/outputs", handler=list_outputs, access=Access.VIEWER, parameters=(ID,),
        summary="List the outputs of a run", errors=(404,),
        answers=(Answer(description="The files", schema=record({"outputs": listed(ref("Output"))})),),
    ),
    Route(
        method="GET", path="/runs/{id}/outputs/{path:rest}", handler=get_output, access=Access.VIEWER,
        parameters=(ID, path("path", text(maxLength=4096), "As listed; its slashes may be written as %2F"), *PARTIAL),
        summary="Download an output of a run", answers=DOWNLOADS, errors=(404, 416),
    ),
)  # fmt: skip
