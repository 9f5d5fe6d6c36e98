"""The OpenAPI 3.1 document, from the rows of the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from runyard.server.auth import Access
from runyard.server.parameters import Parameter
from runyard.server.route import JSON, Answer, Route
from runyard.server.schemas import COMPONENTS, ref
from runyard.version import __version__

_ERRORS = {
    400: "The request is not valid",
    401: "No token, or an unknown one",
    403: "The token's role does not allow it, or the Host header is not this yard's",
    404: "There is no such thing",
    405: "Method not allowed",
    409: "The current state does not allow it",
    413: "The body is too large",
    416: "The file has no such part",
    422: "No site can ever satisfy it",
    500: "The yard failed; its log has the reason",
    503: "Its store or blob store does not answer; try again",
    507: "The yard's disk is full",
}


def build_document(routes: Iterable[Route]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for row in routes:
        paths.setdefault(_plain_path(row.place), {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "runyard",
            "version": __version__,
            "description": "Submit, watch and end training runs. Times are ISO 8601 in UTC, sizes are bytes.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{"bearer": []}, {"token": []}],
        "paths": paths,
        "components": {"schemas": COMPONENTS, "securitySchemes": _SECURITY},
    }


_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "What `runyard token` prints"},
    "token": {"type": "apiKey", "in": "header", "name": "X-Token"},
}


def _plain_path(path: str) -> str:
    return re.sub(r":\w+}", "}", path)


def _operation(row: Route) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": row.operation or row.handler.__name__,
        "summary": row.summary,
        "description": f"{row.description} Least role: {row.access.value}.".strip(),
        "tags": [row.handler.__module__.rpartition(".")[2]],
        "parameters": [_parameter(parameter) for parameter in row.parameters],
        "responses": {**_good(row.answers), **_bad(row)},
    }
    if row.access is Access.PUBLIC:
        shown["security"] = []
    if row.body is not None:
        media = {"schema": row.body.schema} | ({"example": row.body.example} if row.body.example is not None else {})
        shown["requestBody"] = {
            "required": row.body.required,
            "description": row.body.description,
            "content": {row.body.media_type: media},
        }
    return shown


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _good(answers: Iterable[Answer]) -> dict[str, Any]:
    return {str(answer.status): _answer(answer) for answer in answers}


def _answer(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": answer.description}
    if answer.schema is not None:
        shown["content"] = {answer.media_type: {"schema": answer.schema}}
    if answer.headers:
        shown["headers"] = {name: {"schema": {"type": "string"}} for name in answer.headers}
    return shown


def _bad(row: Route) -> dict[str, Any]:
    """The errors this route can answer with: by its kind, and those that its row names."""
    codes = {403, 500, *row.errors}
    if row.access is not Access.PUBLIC:
        codes.add(401)
    if 401 in codes:  # callers are looked up in the store
        codes.add(503)
    codes.add(400)  # an unknown query parameter
    if row.body is not None:
        codes |= {413, 507}
    content = {JSON: {"schema": ref("Error")}}
    return {str(code): {"description": _ERRORS[code], "content": content} for code in sorted(codes)}
