"""The application: routes from the rows of the tables, inside the outermost checks. Only wiring happens here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

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
    hosts = HostCheck(yard.settings.host, [*yard.settings.allowed_hosts, *_public_host(yard)])
    endpoints = _endpoints(service, ROUTES)
    app = Starlette(
        routes=[StarletteRoute(place, endpoint) for place, endpoint in endpoints.items()],
        middleware=[
            Middleware(Perimeter, service=service, hosts=hosts),
            Middleware(Shortcuts, endpoints=endpoints),
        ],
        exception_handlers={HTTPException: _no_such_path},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def _public_host(yard: Yard) -> list[str]:
    """The host name in links to outputs."""
    host = urlsplit(yard.settings.public_url).hostname
    return [host] if host else []


def _endpoints(service: Service, rows: Iterable[Route]) -> dict[str, Endpoint]:
    by_place: dict[str, list[Route]] = {}
    for row in rows:
        by_place.setdefault(row.place, []).append(row)
    return {place: Endpoint(found, service) for place, found in by_place.items()}


async def _no_such_path(request: Request, error: Exception) -> Response:
    return error_answer(errors.NotFound(f"there is nothing at {request.scope['path'][:200]}", f"see {PREFIX}/docs"))


class Shortcuts:
    """Finds paths without variables by a dictionary; the router tries all of its patterns one after the other."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app, self._endpoints = app, {place: to for place, to in endpoints.items() if "{" not in place}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {}
        await endpoint(scope, receive, send)
