"""Addresses without a variable part are found at once; the router tries all of its patterns one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class Shortcuts:
    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app, self._endpoints = app, {place: to for place, to in endpoints.items() if "{" not in place}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {}
        await endpoint(scope, receive, send)
