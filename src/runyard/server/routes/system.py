"""Health, metrics, and the API's own documentation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from starlette.responses import Response

from runyard.model.json_schema import ANYTHING, integer, or_null, record, text
from runyard.server import metrics
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.openapi import build_document
from runyard.server.parameters import path
from runyard.server.route import Answer, Route

# The page runs its own script and talks to this server; nothing else may be loaded, framed or sent anywhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DOCS_FILES = {"docs.js": "text/javascript", "docs.css": "text/css"}


async def health(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.health))


async def show_metrics(call: Call) -> Response:
    return Response(await call.service.read(metrics.render, call.service), media_type=metrics.MEDIA_TYPE)


async def show_docs(call: Call) -> Response:
    return _page("docs.html", "text/html")


async def get_docs_file(call: Call) -> Response:
    return _page(call["file"], DOCS_FILES[call["file"]])


def _page(name: str, media_type: str) -> Response:
    content = resources.files("runyard.server").joinpath(name).read_bytes()
    shown = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Referrer-Policy": "no-referrer"}
    return Response(content, headers=shown, media_type=media_type)


HEALTH = record(
    {
        "status": {"const": "ok"},
        "version": text(),
        "home": text("The directory of this yard"),
        "pid": integer("Its process", 1),
        "runs": {"type": "object", "description": "Runs by state", "additionalProperties": integer()},
        "mirror": or_null(
            record(
                {"dir": text("Directory for results"), "trouble": or_null(text("Why results cannot be written there"))}
            )
        ),
    }
)

ROUTES = (
    Route(
        method="GET", path="/health", handler=health, access=Access.ANY, summary="State of the yard",
        answers=(Answer(description="It is", schema=HEALTH),),
    ),
    Route(
        method="GET", path="/metrics", handler=show_metrics, access=Access.VIEWER, summary="Metrics for Prometheus",
        answers=(Answer(description="Text format 0.0.4", schema=text(), media_type="text/plain"),),
    ),
    Route(
        method="GET", path="/docs", handler=show_docs, access=Access.PUBLIC, summary="A page to read and try this API",
        answers=(Answer(description="The page", schema=text(), media_type="text/html"),),
    ),
    Route(
        method="GET", path="/docs/{file}", handler=get_docs_file, access=Access.PUBLIC, summary="Parts of that page",
        parameters=(path("file", {"type": "string", "enum": list(DOCS_FILES)}, "Which part"),),
        answers=(Answer(description="The part", schema=text(), media_type="text/*"),),
    ),
)  # fmt: skip


def describe(rows: Sequence[Route]) -> Route:
    """The route of the document that describes the others and itself."""

    async def openapi(call: Call) -> Response:
        return answer(document)

    itself = Route(
        method="GET", path="/openapi.json", handler=openapi, access=Access.PUBLIC, summary="This document",
        answers=(Answer(description="OpenAPI 3.1", schema=ANYTHING),),
    )  # fmt: skip
    document = build_document([*rows, itself])
    return itself
