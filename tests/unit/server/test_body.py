from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from runyard import errors
from runyard.server import body


def receiver(*chunks: bytes, gone: bool = False) -> Any:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    last = {"type": "http.disconnect"} if gone else {"type": "http.request", "body": b"", "more_body": False}
    queue = iter([*messages, last])

    async def receive() -> Any:
        return next(queue)

    return receive


def read(*chunks: bytes, limit: int = 10, length: bytes | None = None, gone: bool = False) -> bytes:
    headers = [(b"content-length", length)] if length is not None else []
    return asyncio.run(body.read({"headers": headers}, receiver(*chunks, gone=gone), limit))


def test_chunks_are_joined() -> None:
    assert read(b"ab", b"", b"cd") == b"abcd"
    assert read() == b""


def test_limits() -> None:
    assert read(b"0123456789") == b"0123456789"
    with pytest.raises(errors.TooLarge):
        read(b"01234", b"567890")
    with pytest.raises(errors.TooLarge):
        read(length=b"11")
    with pytest.raises(errors.TooLarge):
        read(length=b"9" * 5000)


def test_a_sender_that_goes_away() -> None:
    with pytest.raises(ClientDisconnect):
        read(b"abc", gone=True)


def test_a_sender_that_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "SILENCE", 0.01)

    async def receive() -> Any:
        await asyncio.sleep(60)

    with pytest.raises(ClientDisconnect):
        asyncio.run(body.read({"headers": []}, receive, 10))
