"""The application: rows become routes, and the perimeter goes around them. Only wiring happens here."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute

from runyard import errors
from runyard.server.answers import error_answer
from runyard.server.auth import HostCheck
from runyard.server.middleware import Perimeter
from runyard.server.route import PREFIX, Endpoint, Route
from runyard.server.routes import ROUTES
from runyard.server.service import Service
from runyard.yard import Yard


def build_app(yard: Yard) -> Starlette:
    """The whole API for one yard; `app.state.service` ends its open streams."""
    service = Service(yard)
    hosts = HostCheck(yard.settings.host, yard.settings.allowed_hosts)
    app = Starlette(
        routes=[StarletteRoute("/", _to_docs), *_starlette_routes(service)],
        middleware=[Middleware(Perimeter, service=service, hosts=hosts)],
        exception_handlers={HTTPException: _no_such_path},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def _starlette_routes(service: Service) -> list[StarletteRoute]:
    endpoints = {path: Endpoint(rows, service) for path, rows in _by_path().items()}
    return [StarletteRoute(f"{PREFIX}{path}", endpoint) for path, endpoint in endpoints.items()]


def _by_path() -> Mapping[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for row in ROUTES:
        found.setdefault(row.path, []).append(row)
    return found


async def _to_docs(request: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/docs")


async def _no_such_path(request: Request, error: Exception) -> Response:
    return error_answer(errors.NotFound(f"there is nothing at {request.scope['path'][:200]}", f"see {PREFIX}/docs"))
