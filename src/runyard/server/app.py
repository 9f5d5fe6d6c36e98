"""The application: rows become routes, and the perimeter goes around them. Only wiring happens here."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from runyard import errors
from runyard.server.answers import error_answer
from runyard.server.auth import HostCheck
from runyard.server.middleware import Perimeter
from runyard.server.route import PREFIX, Endpoint, Route
from runyard.server.routes import ROUTES
from runyard.server.service import Service
from runyard.server.shortcuts import Shortcuts
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
    """The name in links that are handed out."""
    host = urlsplit(yard.settings.public_url).hostname
    return [host] if host else []


def _endpoints(service: Service, rows: Iterable[Route]) -> dict[str, Endpoint]:
    by_place: dict[str, list[Route]] = {}
    for row in rows:
        by_place.setdefault(row.place, []).append(row)
    return {place: Endpoint(found, service) for place, found in by_place.items()}


async def _no_such_path(request: Request, error: Exception) -> Response:
    return error_answer(errors.NotFound(f"there is nothing at {request.scope['path'][:200]}", f"see {PREFIX}/docs"))
