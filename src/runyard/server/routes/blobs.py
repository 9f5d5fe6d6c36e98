"""Files by digest. What is stored under a digest has that digest, and is never changed."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard.blobs import BlobWriter
from runyard.model.json_schema import integer, record
from runyard.server import body
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.files import send_blob
from runyard.server.parameters import path
from runyard.server.route import Answer, Body, Route
from runyard.server.routes.outputs import DOWNLOADS, FILE, OCTETS, PARTIAL
from runyard.server.schemas.common import DIGEST as DIGEST_SHAPE

WRITTEN_AT_ONCE = 1 << 20  # bytes gathered before a thread writes them


async def get_blob(call: Call) -> ASGIApp:
    return await send_blob(call, call["digest"], call["digest"].removeprefix("sha256:"))


async def put_blob(call: Call) -> Response:
    blobs, digest = call.service.yard.blobs, call["digest"]
    if await call.service.read(blobs.is_sent, digest):
        return answer({"digest": digest, "size": await call.service.read(blobs.size, digest)})
    writer = await call.service.write(blobs.writer, digest)
    try:
        size = await _write_all(call, writer)
    except BaseException:
        writer.discard()
        raise
    await call.service.write(writer.commit)
    return answer({"digest": digest, "size": size}, 201)


async def _write_all(call: Call, writer: BlobWriter) -> int:
    size, gathered = 0, bytearray()
    async for chunk in body.stream(call.receive):
        size += len(chunk)
        gathered += chunk
        if len(gathered) >= WRITTEN_AT_ONCE:
            await call.service.write(writer.write, bytes(gathered))
            gathered.clear()
    await call.service.write(writer.write, bytes(gathered))
    return size


DIGEST = path("digest", DIGEST_SHAPE, "sha256: and 64 hexadecimal digits")
STORED = record({"digest": DIGEST_SHAPE, "size": integer("Bytes")})

ROUTES = (
    Route(
        method="GET", path="/blobs/{digest}", handler=get_blob, access=Access.ANY, parameters=(DIGEST, *PARTIAL),
        summary="Download a file by its digest", description="HEAD says whether it exists.",
        answers=DOWNLOADS, errors=(404, 416),
    ),
    Route(
        method="PUT", path="/blobs/{digest}", handler=put_blob, access=Access.UPLOADER, parameters=(DIGEST,),
        summary="Store a file under its digest", description="Refused if the digest does not match.",
        body=Body(schema=FILE, media_type=OCTETS),
        answers=(
            Answer(status=201, description="Stored", schema=STORED),
            Answer(status=200, description="It existed already", schema=STORED),
        ),
    ),
)  # fmt: skip
