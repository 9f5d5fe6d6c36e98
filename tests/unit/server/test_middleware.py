from __future__ import annotations

import asyncio
import errno
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from runyard import errors
from runyard.server.auth import HostCheck
from runyard.server.middleware import Perimeter
from runyard.server.service import RequestCounts, Service

SCOPE = {"type": "http", "method": "GET", "path": "/x", "headers": [(b"host", b"localhost")], "server": None}


def run(error: Exception, started: bool = False) -> tuple[list[Any], RequestCounts]:
    """What goes out when the application raises this error."""
    sent: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    counts = RequestCounts()
    service = cast(Service, SimpleNamespace(counts=counts))
    asyncio.run(Perimeter(app, service, HostCheck("127.0.0.1", []))(dict(SCOPE), receive, send))
    return sent, counts


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.NotFound("no such run"), 404, "not_found"),
        (errors.Unauthorized(), 401, "unauthorized"),
        (errors.DiskFull(), 507, "disk_full"),
        (OSError(errno.ENOSPC, "No space left on device"), 507, "disk_full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 507, "disk_full"),
        (RecursionError(), 400, "invalid"),
        (ValueError("secret detail"), 500, "error"),
        (OSError(errno.EIO, "secret detail"), 500, "error"),
    ],
)
def test_errors_become_answers(error: Exception, status: int, code: str) -> None:
    (start, body), counts = run(error)
    assert start["status"] == status
    assert json.loads(body["body"])["error"]["code"] == code
    assert b"secret detail" not in body["body"]
    assert list(counts) == [(("GET", "other", status), 1)]


def test_an_unexpected_error_is_logged_under_the_id_that_the_client_sees(caplog: pytest.LogCaptureFixture) -> None:
    (start, _), _ = run(ValueError("secret detail"))
    number = dict(start["headers"])[b"x-request-id"].decode()
    (record,) = caplog.records
    assert number in record.getMessage() and record.exc_info is not None


def test_an_error_after_the_answer_began_sends_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    sent, _ = run(ValueError("late"), started=True)
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert "ended early" in caplog.text


def test_a_client_that_went_away_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    sent, _ = run(ClientDisconnect())
    assert sent == [] and caplog.records == []
