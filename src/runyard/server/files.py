"""Blobs as answers, with ranges and with ETags."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard.server.call import Call
from runyard.server.ranges import no_such_part, parse_range
from runyard.server.stream import ByteStream, read_span

AT_ONCE = 1 << 20  # bytes: each part may be a request to S3


async def send_blob(call: Call, digest: str, filename: str) -> ASGIApp:
    blobs = call.service.yard.blobs
    size = await call.service.read(blobs.size, digest)
    tag = f'"{digest}"'
    if tag in call.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    span = parse_range(_range_header(call, tag), size)
    if span is None:
        return no_such_part(size)
    shown = {"Content-Type": "application/octet-stream", "Content-Disposition": attachment(filename), "ETag": tag}
    chunks = read_span(call.service, partial(blobs.read, digest), span, AT_ONCE)
    return ByteStream(chunks, {**shown, **span.headers}, span.status)


def _range_header(call: Call, tag: str) -> str | None:
    """A client that resumes the download of another file gets the whole of this one."""
    if call.headers.get("if-range", tag) != tag:
        return None
    return call.headers.get("range")


def attachment(filename: str) -> str:
    """Content-Disposition of RFC 6266: always a download, never a page of this origin."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._- ") else "_" for char in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
