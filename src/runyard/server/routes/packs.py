"""Files by digest, many at once; and large ones in pieces, so that an interrupted transfer can continue."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response
from starlette.types import ASGIApp

from runyard import errors
from runyard.blobs.base import Blobs
from runyard.model import packs, text_delta
from runyard.model.declaration import Declared, field, schema
from runyard.model.json_schema import BOOLEAN, described, integer, listed, record, text
from runyard.model.values import Checked, Digest, Many
from runyard.server import body
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import path, query
from runyard.server.route import Answer, Body, Route
from runyard.server.routes.outputs import FILE, OCTETS
from runyard.server.schemas.common import DIGEST
from runyard.server.service import Service
from runyard.server.stream import ByteStream

APPENDED_AT_ONCE = 1 << 20  # bytes gathered before a thread writes them
SENT_AT_ONCE = 1 << 20
LARGEST = 1 << 50
RANGE = described(listed(integer(), minItems=2, maxItems=2), "Start and end in the base, in bytes")
PIECES = listed({"anyOf": [text("New text"), RANGE]}, maxItems=text_delta.MOST_PIECES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Digests(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    digests: list[str] = field(
        Many(Digest(), packs.MOST_ASKED, lambda found: list(dict.fromkeys(found))), help="Each counts once"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit(Declared):
    place: ClassVar[str] = "body"
    root: ClassVar[bool] = True

    digest: str = field(Digest(), help="Of the result")
    base: str = field(Digest(), help="A stored text")
    pieces: object = field(Checked(lambda value, _: value, PIECES), help="New texts, and ranges of the base")


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
    edit = await call.parse(Edit)
    await call.service.write(_store_edited, call.service.yard.blobs, edit)
    return answer({"digest": edit.digest})


def _store_edited(blobs: Blobs, edit: Edit) -> None:
    if blobs.size(edit.base) > packs.LARGE:
        raise errors.InvalidInput(f"base: {edit.base} is too large to be edited", "send the file as it is")
    blobs.put(edit.digest, [text_delta.apply(blobs.read(edit.base, 0, packs.LARGE), edit.pieces)])


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
    """Received bytes are kept, also if the sender disconnects in the middle: it can ask how many there are."""
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
    return (await call.service.read(Digests.parse, await call.json())).digests


EXAMPLE = {"digests": ["sha256:" + "0" * 64]}
EDIT_EXAMPLE = {"digest": "sha256:" + "0" * 64, "base": "sha256:" + "1" * 64, "pieces": [[0, 10], "new", [12, 90]]}
FRAMES = "For each file its digest (32 bytes), its length (8 bytes, big-endian) and its bytes"

ROUTES = (
    Route(
        method="POST", path="/blobs/missing", handler=find_missing, access=Access.UPLOADER,
        summary="Ask which files the yard does not have",
        description="The others are kept for at least half an hour: refer to them within that time, or ask again.",
        body=Body(schema=schema(Digests), example=EXAMPLE),
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
        summary="Store a text as its difference from a stored one",
        body=Body(schema=schema(Edit), example=EDIT_EXAMPLE),
        description="For example the description of a directory in which one file changed. Refused if the digest of "
        "the result does not match.",
        answers=(Answer(description="Stored", schema=record({"digest": DIGEST})),), errors=(404,),
    ),
    Route(
        method="POST", path="/blobs/fetch", handler=fetch_pack, access=Access.ANY,
        summary="Download many small files", body=Body(schema=schema(Digests), example=EXAMPLE),
        description=f"In the order of the question. At most {packs.LARGE >> 20} MiB for each file.",
        answers=(Answer(description=FRAMES, schema=FILE, media_type=OCTETS),), errors=(404,),
    ),
    Route(
        method="PATCH", path="/blobs/{digest}", handler=append_blob, access=Access.UPLOADER,
        parameters=(
            path("digest", DIGEST, "sha256: and 64 hexadecimal digits"),
            query("offset", integer("Bytes", 0, LARGEST), "Offset of the body in the file", required=True),
            query("size", integer("Bytes", 0, LARGEST), "Size of the whole file in bytes", required=True),
        ),
        summary="Store a large file in pieces", body=Body(schema=FILE, media_type=OCTETS, required=False),
        description="The answer is the number of stored bytes, at which to continue; an empty body only asks for it. "
        "With the last byte the file is stored, or deleted and refused if its digest does not match. Uploads of one "
        "digest with different sizes are independent.",
        answers=(
            Answer(
                description="Bytes stored so far",
                schema=record({
                    "digest": DIGEST, "held": integer("Bytes"), "complete": described(BOOLEAN, "It is stored"),
                }),
            ),
        ),
    ),
)  # fmt: skip
