from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_json_comes_out_as_it_went_in(value: dict[str, Any]) -> None:
    assert body.parse_json(json.dumps(value).encode()) == value


@given(st.binary(max_size=50))
def test_any_bytes_are_understood_or_refused(data: bytes) -> None:
    try:
        assert isinstance(body.parse_json(data), dict)
    except errors.InvalidInput as error:
        assert error.message


@pytest.mark.parametrize("levels", [64, 65])
def test_depth(levels: int) -> None:
    data = b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
    if levels <= body.DEEPEST:
        body.parse_json(data)
    else:
        with pytest.raises(errors.InvalidInput, match="too deeply"):
            body.parse_json(data)


def test_many_shallow_objects_are_fine() -> None:
    assert len(body.parse_json(json.dumps({"runs": [{"command": ["true"]}] * 1000}).encode())["runs"]) == 1000
