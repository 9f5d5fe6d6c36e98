"""A route is a row of a table; the Starlette route, the role check and the OpenAPI document all come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard import errors
from runyard.server.answers import error_answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import Parameter, parse_all
from runyard.server.service import Service

PREFIX = "/api/v1"
JSON = "application/json"

Handler = Callable[[Call], Awaitable[ASGIApp]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a request."""

    schema: dict[str, Any]
    description: str = ""
    example: Any = None
    media_type: str = JSON
    required: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The answer with one status. Errors are added to the document automatically."""

    description: str
    schema: dict[str, Any] | None = None
    status: int = 200
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    method: str
    path: str  # below the prefix; {name} is one part, {name:rest} all that follows
    handler: Handler
    access: Access
    summary: str
    answers: tuple[Answer, ...]
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    errors: tuple[int, ...] = ()  # beyond those that every route of its kind has
    description: str = ""
    prefix: str = PREFIX  # '': a path that is older than the API
    operation: str = ""  # its name in the document, if not the handler's

    @property
    def place(self) -> str:
        return f"{self.prefix}{self.path}"


class _Rest(Convertor[str]):
    """Like Starlette's `path`, but with line breaks, which file names may contain."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", _Rest())


class Endpoint:
    """Everything at one path: picks the row by method, checks the caller and the parameters, calls the handler."""

    def __init__(self, rows: Iterable[Route], service: Service) -> None:
        self._rows = {row.method: row for row in rows}
        self._parsed = {method: _without_headers(row) for method, row in self._rows.items()}
        if "GET" in self._rows:
            self._rows.setdefault("HEAD", self._rows["GET"])
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        row = self._rows.get(scope["method"])
        response = await self._answer(row, scope, receive) if row else self._refuse(scope["method"])
        await response(scope, receive, send)

    async def _answer(self, row: Route, scope: Scope, receive: Receive) -> ASGIApp:
        scope["runyard.path"] = row.path
        caller = None
        if row.access is not Access.PUBLIC:
            caller = await self._service.gate.admit(scope, row.access)
        values = {}
        parsed = self._parsed[row.method]
        if parsed or scope["query_string"]:
            values = parse_all(parsed, scope["path_params"], scope["query_string"])
        return await row.handler(Call(self._service, scope, receive, caller, values))

    def _refuse(self, method: str) -> Response:
        allowed = ", ".join(sorted(self._rows))
        error = errors.InvalidInput(f"{method} is not possible here", f"possible: {allowed}")
        return error_answer(error, 405, {"Allow": allowed})


def _without_headers(row: Route) -> list[Parameter]:
    """Handlers read headers themselves."""
    return [parameter for parameter in row.parameters if parameter.place != "header"]
