"""Long answers: bytes in bounded memory, logs that grow while they are read, and waits for a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from runyard.model.states import RunState
from runyard.server.ranges import Span
from runyard.server.service import Service

CHUNK = 256 << 10
LOG_POLL = 0.25  # seconds between reads without a hint: another server may have the agent's connection
STATE_POLL = 1.0

T = TypeVar("T")
Reader = Callable[[int, int], bytes]  # offset, limit → bytes; fewer only at the end


class Interrupted(Exception):
    """The server stops during an answer. An unfinished answer makes the client repeat the request."""


class ByteStream:
    """An ASGI answer from a generator; it waits for the client to read, and ends when the client disconnects."""

    def __init__(self, chunks: AsyncGenerator[bytes], headers: Mapping[str, str], status: int = 200) -> None:
        self._chunks, self._status = chunks, status
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
        try:
            if scope["method"] != "HEAD":
                await self._send_all(receive, send)
            await send({"type": "http.response.body", "body": b""})
        except Interrupted:
            pass
        finally:
            await self._chunks.aclose()

    async def _send_all(self, receive: Receive, send: Send) -> None:
        while (data := await unless_gone(receive, anext(self._chunks, None))) is not None:
            await send({"type": "http.response.body", "body": data, "more_body": True})


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """The result of the work; raises ClientDisconnect, and cancels the work, if the client disconnects first."""
    gone, task = asyncio.ensure_future(_disconnected(receive)), asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, task}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        gone.cancel()
        if task.cancel():
            await asyncio.wait({task})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_span(service: Service, reader: Reader, span: Span, at_once: int = CHUNK) -> AsyncGenerator[bytes]:
    """Exactly the bytes of the span: its length was already sent."""
    offset = span.start
    while offset < span.stop:
        data = await service.read(reader, offset, min(at_once, span.stop - offset))
        if not data:
            raise EOFError(f"{span.stop - offset} bytes are missing at {offset}")
        offset += len(data)
        yield data


async def follow_log(service: Service, run: int, reader: Reader, offset: int) -> AsyncGenerator[bytes]:
    """The log from an offset, then what is added to it, until the run is final and everything was sent."""
    with service.listening(f"log:{run}", f"run:{run}") as bell:
        while not service.stopping:
            data, final = await service.read(_look, service, run, reader, offset)
            if data:
                offset += len(data)
                yield data
            elif final:
                return
            else:
                await bell.wait(LOG_POLL)
    raise Interrupted


def _look(service: Service, run: int, reader: Reader, offset: int) -> tuple[bytes, bool]:
    """New bytes, and whether there can be no more: the state is read first, since bytes are stored before the end."""
    data = reader(offset, CHUNK)
    if data or not _final(service, run):
        return data, False
    data = reader(offset, CHUNK)
    return data, not data


async def wait_for_run(service: Service, run: int, seconds: float) -> dict[str, Any]:
    """The run, as soon as it is final or the time is over."""
    deadline = time.monotonic() + seconds
    with service.listening(f"run:{run}") as bell:
        while not await service.read(_final, service, run):
            left = deadline - time.monotonic()
            if left <= 0 or service.stopping:
                break
            await bell.wait(min(left, STATE_POLL))
    return await service.read(service.yard.get_run, run)


async def wait_for_outputs(service: Service, run: int, wish: int, seconds: float) -> bool:
    """Whether the outputs are as new as the request `wish`, or the run has ended, before the time is over."""
    return await _wait_for(service, service.yard.has_outputs, run, wish, seconds)


async def wait_for_checkpoint(service: Service, run: int, wish: int, seconds: float) -> bool:
    """The same for checkpoints."""
    return await _wait_for(service, service.yard.checkpoints.are_here, run, wish, seconds)


async def _wait_for(
    service: Service, is_here: Callable[[int, int], bool], run: int, wish: int, seconds: float
) -> bool:  # fmt: skip
    deadline = time.monotonic() + seconds
    with service.listening(f"run:{run}") as bell:
        while not await service.read(is_here, run, wish):
            left = deadline - time.monotonic()
            if left <= 0 or not wish or service.stopping:
                return False
            await bell.wait(min(left, STATE_POLL))
    return True


def _final(service: Service, run: int) -> bool:
    state = service.yard.run_states([run]).get(run)
    return state is None or RunState(state).final
