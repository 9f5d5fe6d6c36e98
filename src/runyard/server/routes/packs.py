"""Files by digest, many at once; and large ones piece by piece, so that a transfer that was cut goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard import errors
from runyard.blobs.base import Blobs
from runyard.model import edits, fields, packs
from runyard.model.digest import check_digest
from runyard.server import body
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import Answer, Body, Route
from runyard.server.routes.outputs import FILE, OCTETS
from runyard.server.schemas.build import BOOLEAN, described, integer, listed, record, text
from runyard.server.schemas.common import DIGEST
from runyard.server.service import Service
from runyard.server.stream import ByteStream

APPENDED_AT_ONCE = 1 << 20  # bytes gathered before a thread writes them
SENT_AT_ONCE = 1 << 20
LARGEST = 1 << 50


async def find_missing(call: Call) -> Response:
    digests = await _asked(call)
    missing = await call.service.read(call.service.yard.blobs.missing, digests)
    return answer({"missing": [digest for digest in digests if digest in missing]})


async def put_pack(call: Call) -> Response:
    data = await call.bytes(packs.LARGEST_PACK)
    return answer({"stored": await call.service.write(_store, call.service.yard.blobs, data)})


def _store(blobs: Blobs, data: bytes) -> int:
    contents = dict(packs.parse(data))
    if not contents:
        raise errors.InvalidInput("the pack is empty", "send at least one file")
    blobs.put_many(contents)
    return len(contents)


async def put_edited(call: Call) -> Response:
    given = fields.mapping(await call.json(), "body", ("digest", "base", "pieces"))
    digest, base = (check_digest(given.get(name), name) for name in ("digest", "base"))
    await call.service.write(_store_edited, call.service.yard.blobs, digest, base, given.get("pieces"))
    return answer({"digest": digest})


def _store_edited(blobs: Blobs, digest: str, base: str, pieces: object) -> None:
    if blobs.size(base) > packs.LARGE:
        raise errors.InvalidInput(f"base: {base} is too large to be edited", "send the file as it is")
    blobs.put(digest, [edits.apply(blobs.read(base, 0, packs.LARGE), pieces)])


async def fetch_pack(call: Call) -> ASGIApp:
    digests, blobs = await _asked(call), call.service.yard.blobs
    sizes = await call.service.read(_sizes, blobs, digests)
    length = sum(sizes.values()) + packs.HEADER * len(sizes)
    shown = {"Content-Type": OCTETS, "Content-Length": str(length)}
    return ByteStream(_frames(call.service, blobs, sizes), shown)


def _sizes(blobs: Blobs, digests: Sequence[str]) -> dict[str, int]:
    sizes = blobs.sizes(digests)
    for digest, size in sizes.items():
        if size > packs.LARGE:
            raise errors.InvalidInput(f"{digest} has {size} bytes", f"ask for it alone: GET /api/v1/blobs/{digest}")
    return sizes


async def _frames(service: Service, blobs: Blobs, sizes: dict[str, int]) -> AsyncGenerator[bytes]:
    gathered: list[str] = []
    held = 0
    for digest, size in sizes.items():
        gathered.append(digest)
        held += size
        if held >= SENT_AT_ONCE:
            yield await service.read(_read_all, blobs, gathered)
            gathered, held = [], 0
    yield await service.read(_read_all, blobs, gathered)


def _read_all(blobs: Blobs, digests: Sequence[str]) -> bytes:
    return packs.pack(blobs.read_many(digests).items())


async def append_blob(call: Call) -> Response:
    blobs, digest, size = call.service.yard.blobs, call["digest"], call["size"]
    if await call.service.read(blobs.is_sent, digest):
        return answer({"digest": digest, "held": size, "complete": True})
    held = await _append_all(call, blobs, digest)
    if held == size:
        await call.service.write(blobs.commit_partial, digest, size)
    return answer({"digest": digest, "held": held, "complete": held == size})


async def _append_all(call: Call, blobs: Blobs, digest: str) -> int:
    """What arrived stays, also when the sender goes away in the middle: it is told how much there is when it asks."""
    size, offset, gathered = call["size"], call["offset"], bytearray()
    async for chunk in body.stream(call.receive):
        gathered += chunk
        if len(gathered) >= APPENDED_AT_ONCE:
            held = await call.service.write(blobs.append_partial, digest, size, offset, bytes(gathered))
            if held < offset + len(gathered):
                return held
            offset += len(gathered)
            gathered.clear()
    return await call.service.write(blobs.append_partial, digest, size, offset, bytes(gathered))


async def _asked(call: Call) -> list[str]:
    return await call.service.read(_digests, await call.json())


def _digests(given: dict[str, Any]) -> list[str]:
    """Each once, in their order."""
    digests = fields.mapping(given, "body", ("digests",)).get("digests")
    if not isinstance(digests, list):
        raise errors.InvalidInput("digests: must be a list")
    fields.at_most(len(digests), "digests", packs.MOST_ASKED)
    return list(dict.fromkeys(check_digest(digest, "digests") for digest in digests))


QUESTION = record({"digests": listed(DIGEST, maxItems=packs.MOST_ASKED)})
EXAMPLE = {"digests": ["sha256:" + "0" * 64]}
RANGE = described(listed(integer(), minItems=2, maxItems=2), "From where to where in the base, in bytes")
PIECES = listed({"anyOf": [text("New text"), RANGE]}, maxItems=edits.MOST_PIECES)
EDIT = record({"digest": DIGEST, "base": DIGEST, "pieces": PIECES})
EDIT_EXAMPLE = {"digest": "sha256:" + "0" * 64, "base": "sha256:" + "1" * 64, "pieces": [[0, 10], "new", [12, 90]]}
FRAMES = "For each file its digest (32 bytes), its length (8 bytes, big-endian) and its bytes"

ROUTES = (
    Route(
        method="POST", path="/blobs/missing", handler=find_missing, access=Access.UPLOADER,
        summary="Ask which files the yard does not have",
        description="What it has is sure to be there for half an hour: refer to it by then, or ask again.",
        body=Body(schema=QUESTION, example=EXAMPLE),
        answers=(Answer(description="Those that are missing", schema=record({"missing": listed(DIGEST)})),),
    ),
    Route(
        method="POST", path="/blobs/pack", handler=put_pack, access=Access.UPLOADER,
        summary="Store many small files", body=Body(schema=FILE, media_type=OCTETS, description=FRAMES),
        description=f"All of them, or none when one has another digest than it says. At most {packs.LARGE >> 20} MiB "
        f"for each file, {packs.PACK >> 20} MiB for all together.",
        answers=(Answer(description="Stored", schema=record({"stored": integer("How many files")})),),
        errors=(413,),
    ),
    Route(
        method="POST", path="/blobs/edit", handler=put_edited, access=Access.UPLOADER,
        summary="Store a text by what differs from one that the yard has", body=Body(schema=EDIT, example=EDIT_EXAMPLE),
        description="Such as the description of a folder in which one file changed. Refused where the result has "
        "another digest than it says.",
        answers=(Answer(description="Stored", schema=record({"digest": DIGEST})),), errors=(404,),
    ),
    Route(
        method="POST", path="/blobs/fetch", handler=fetch_pack, access=Access.ANY,
        summary="Download many small files", body=Body(schema=QUESTION, example=EXAMPLE),
        description=f"In the order of the question. At most {packs.LARGE >> 20} MiB for each file.",
        answers=(Answer(description=FRAMES, schema=FILE, media_type=OCTETS),), errors=(404,),
    ),
    Route(
        method="PATCH", path="/blobs/{digest}", handler=append_blob, access=Access.UPLOADER,
        parameters=(
            path("digest", DIGEST, "sha256: and 64 hexadecimal digits"),
            query("offset", integer("Bytes", 0, LARGEST), "Where the body begins in the file", required=True),
            query("size", integer("Bytes", 0, LARGEST), "Bytes of the whole file", required=True),
        ),
        summary="Store a large file piece by piece", body=Body(schema=FILE, media_type=OCTETS, required=False),
        description="The answer says how much is held, which is where to go on; an empty body asks just that. When all "
        "of it is there it is stored, or dropped and refused where it has another digest. Senders that say another "
        "size do not meet.",
        answers=(
            Answer(
                description="As far as it is there",
                schema=record({
                    "digest": DIGEST, "held": integer("Bytes"), "complete": described(BOOLEAN, "It is stored"),
                }),
            ),
        ),
    ),
)  # fmt: skip
