"""Files for programs that have a link from a reply, but no token."""

from __future__ import annotations

from starlette.types import ASGIApp

from runyard.model.json_schema import integer, text
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.files import send_blob
from runyard.server.parameters import path, query
from runyard.server.route import Route
from runyard.server.routes.outputs import DOWNLOADS, PARTIAL
from runyard.server.schemas.common import DIGEST

SIGNATURE = text(pattern="^[0-9a-f]{64}$")


async def get_linked(call: Call) -> ASGIApp:
    await call.service.read(
        call.service.yard.links.check, call["digest"], call["name"], call["expires"], call["signature"]
    )
    return await send_blob(call, call["digest"], call["name"])


ROUTES = (
    Route(
        method="GET", path="/links/{digest}/{name}", handler=get_linked, access=Access.PUBLIC,
        summary="Download a file by a link from a reply",
        description="Needs no token, only the link, until it expires.",
        parameters=(
            path("digest", DIGEST, "The digest of the file"),
            path("name", text(minLength=1, maxLength=1000), "The name of the downloaded file"),
            query("expires", integer("", 1, 1 << 53), "Seconds since 1970", required=True),
            query("signature", SIGNATURE, "The yard's own", required=True),
            *PARTIAL,
        ),
        answers=DOWNLOADS, errors=(403, 404, 416),
    ),
)  # fmt: skip
