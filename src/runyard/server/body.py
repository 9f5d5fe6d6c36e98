"""Request bodies, and their limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from runyard import errors
from runyard.model import units

SILENCE = 60  # seconds without bytes after which a request is aborted


async def read(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, in memory."""
    _check_announced(scope, limit)
    chunks, size = [], 0
    async for chunk in stream(receive):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def stream(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it arrives; the sender is slowed down while a chunk is in use."""
    more = True
    while more:
        message = await _next(receive)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


async def _next(receive: Receive) -> Any:
    try:
        async with asyncio.timeout(SILENCE):
            return await receive()
    except TimeoutError:
        raise ClientDisconnect from None


def _check_announced(scope: Scope, limit: int) -> None:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > limit:
            raise _too_large(limit)


def _too_large(limit: int) -> errors.TooLarge:
    return errors.TooLarge(
        f"the body is larger than {units.show_size(limit)}",
        "send less in one request, or raise body_limit in config.toml",
    )
