"""Request bodies: their limits, and JSON that means one thing only."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from runyard import errors
from runyard.model import units

DEEPEST = 64  # levels of lists and objects
SILENCE = 60  # seconds after which a sender that stopped in the middle of a body is given up


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


def parse_json(data: bytes) -> dict[str, Any]:
    """A JSON object in UTF-8. NaN, 1e999 and names given twice are refused: no two readers agree on them."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.InvalidInput(f"the body is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        raise errors.InvalidInput(
            f"the body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise errors.InvalidInput("the body is nested too deeply") from None
    except ValueError as error:  # json's own for numbers of thousands of digits
        raise errors.InvalidInput(f"the body is not JSON: {error}") from None
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        _check_depth(value)
    if not isinstance(value, dict):
        raise errors.InvalidInput("the body must be a JSON object", 'such as {"command": ["python", "train.py"]}')
    return value


def _check_depth(value: Any) -> None:
    """Level by level: what is stored must be readable again with a shallower stack than this one."""
    level = [value]
    for _ in range(DEEPEST):
        children = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
        level = [child for child in children if isinstance(child, (dict, list))]
        if not level:
            return
    raise errors.InvalidInput("the body is nested too deeply", f"use at most {DEEPEST} levels")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise errors.InvalidInput(f"the body names {twice[:80]!r} twice in one object", "keep one of them")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise errors.InvalidInput(f"the body has a number that is too large: {text[:80]}", "send it as a text")
    return value


def _no_constant(word: str) -> NoReturn:
    raise errors.InvalidInput(f"the body is not JSON: {word} is not a JSON number", "send it as a text, or null")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
