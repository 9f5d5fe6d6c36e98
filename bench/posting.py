"""One client for all servers that are compared: many connections, each sending its next request after its answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where to post what, again and again."""

    url: str
    path: str
    body: Mapping[str, Any]
    token: str = ""
    status: int = 200  # that every answer must have

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 80)

    def request(self) -> bytes:
        body = json.dumps(self.body).encode()
        head = [
            f"POST {self.path} HTTP/1.1",
            f"Host: {urlsplit(self.url).netloc}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            *([f"Authorization: Bearer {self.token}"] if self.token else []),
        ]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def rate(target: Target, count: int, connections: int) -> float:
    """Answered requests a second."""
    return count / uvloop.run(_post_all(target, count, connections))


async def _post_all(target: Target, count: int, connections: int) -> float:
    share = count // connections + 1
    counts = [min(share, count - start) for start in range(0, count, share)]
    begin = time.perf_counter()
    await asyncio.gather(*(_post_over_one(target, number) for number in counts))
    return time.perf_counter() - begin


async def _post_over_one(target: Target, count: int) -> None:
    """Over one connection, and a new one where a server closes it after its answer."""
    request, writer = target.request(), None
    for _ in range(count):
        if writer is None:
            reader, writer = await asyncio.open_connection(*target.address)
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _check(head, target)
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        if b"connection: close" in head:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()


def _check(head: bytes, target: Target) -> None:
    if f" {target.status} ".encode() not in head.split(b"\r\n")[0]:
        raise SystemExit(f"a POST to {target.url}{target.path} was answered {head.decode()}")
