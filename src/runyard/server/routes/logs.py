"""Logs, and usage samples of runs."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard.model import wire
from runyard.model.json_schema import BOOLEAN, Schema, integer, listed, record
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import header, query
from runyard.server.ranges import Span, no_such_part, parse_range
from runyard.server.route import Answer, Route
from runyard.server.routes.runs import ID
from runyard.server.schemas import ref
from runyard.server.stream import ByteStream, Reader, follow_log, read_span

TEXT = "text/plain"
BYTES: Schema = {"type": "string", "description": "Bytes as the run wrote them; not always UTF-8"}


async def read_log(call: Call) -> ASGIApp:
    yard, run = call.service.yard, call["id"]
    place = {"attempt": call["attempt"], "file": call["file"]}
    size = await call.service.read(yard.log_size, run, **place)
    reader: Reader = partial(yard.read_log, run, **place)
    shown = {"Content-Type": f"{TEXT}; charset=utf-8", "X-Log-Size": str(size), "Cache-Control": "no-store"}
    if call["follow"]:
        return ByteStream(follow_log(call.service, run, reader, call["offset"] or 0), shown)
    span = _span(call, size)
    if span is None:
        return no_such_part(size)
    return ByteStream(read_span(call.service, reader, span), {**shown, **span.headers}, span.status)


def _span(call: Call, size: int) -> Span | None:
    """The part that the query names, else the part that the Range header names."""
    if call["offset"] is None and call["limit"] is None:
        return parse_range(call.headers.get("range"), size)
    start = min(size, call["offset"] or 0)
    stop = size if call["limit"] is None else min(size, start + call["limit"])
    return Span(start=start, stop=stop, size=size)


async def list_usage(call: Call) -> Response:
    return answer({"usage": await call.service.read(call.service.yard.usage, call["id"], call["last"])})


PART = (
    query("attempt", integer("", 1, 1 << 31), "Only this attempt; without it all of them, with a line between"),
    query("file", {"type": "string", "enum": list(wire.RELAYED_FILES), "default": "log"}, "Which file of the attempt"),
    query("offset", integer("", 0, 1 << 62), "First byte"),
    query("limit", integer("", 0, 1 << 62), "How many bytes at most"),
    query("follow", {**BOOLEAN, "default": False}, "Keep sending what is added, until the run has ended"),
    header("Range", "bytes=a-b, bytes=a- or bytes=-n for the last n bytes; offset and limit take precedence"),
)

ROUTES = (
    Route(
        method="GET", path="/runs/{id}/log", handler=read_log, access=Access.VIEWER,
        summary="Read a log, or follow it while it grows",
        description=(
            "X-Log-Size is the length so far. A followed log that ends without the closing chunk was cut short by a "
            "stop of the yard: ask again from the offset reached."
        ),
        parameters=(ID, *PART),
        answers=(
            Answer(description="The bytes", schema=BYTES, media_type=TEXT, headers=("X-Log-Size",)),
            Answer(
                status=206, description="The part of the Range header", schema=BYTES, media_type=TEXT,
                headers=("X-Log-Size", "Content-Range"),
            ),
        ),
        errors=(404, 416),
    ),
    Route(
        method="GET", path="/runs/{id}/usage", handler=list_usage, access=Access.VIEWER,
        summary="The newest usage samples, oldest first",
        parameters=(ID, query("last", {**integer("", 1, 100_000), "default": 60}, "How many at most")),
        answers=(Answer(description="The samples", schema=record({"usage": listed(ref("Usage"))})),),
        errors=(404,),
    ),
)  # fmt: skip
