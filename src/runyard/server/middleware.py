"""The outermost layer: a request gets an id, its host is checked, it is counted, and it is always answered."""

from __future__ import annotations

import errno
import itertools
import logging
import secrets

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runyard import errors
from runyard.server.answers import error_answer
from runyard.server.auth import HostCheck
from runyard.server.service import Service

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Perimeter:
    def __init__(self, app: ASGIApp, service: Service, hosts: HostCheck) -> None:
        self._app, self._service, self._hosts = app, service, hosts
        self._prefix = secrets.token_hex(3)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(f"{self._prefix}-{next(self._numbers):x}", send)
        try:
            self._hosts.check(scope)
            await self._app(scope, receive, exchange.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            await exchange.fail(error, scope, receive)
        finally:
            self._service.counts.add(scope["method"], scope.get("runyard.path", "other"), exchange.status)


class _Exchange:
    """One answer while it is sent."""

    def __init__(self, request_id: str, send: Send) -> None:
        self._id, self._send = request_id, send
        self.status = 0  # until an answer has begun

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [(b"x-request-id", self._id.encode()), (b"x-content-type-options", b"nosniff")]
            message = {**message, "headers": [*message["headers"], *own]}
        try:
            await self._send(message)
        except RuntimeError as error:
            if "closed" in str(error):  # uvloop's message for a client that has just disconnected
                raise ClientDisconnect from None
            raise

    async def fail(self, error: Exception, scope: Scope, receive: Receive) -> None:
        if self.status:  # too late for another answer: the connection is closed, which the client sees as cut short
            log.error("request %s ended early: %r", self._id, error, extra={"action": "request_cut"})
            return
        await error_answer(self._explain(error, scope))(scope, receive, self.send)

    def _explain(self, error: Exception, scope: Scope) -> errors.RunyardError:
        if isinstance(error, errors.RunyardError):
            return error
        if isinstance(error, RecursionError):
            return errors.InvalidInput("the body is nested too deeply")
        if isinstance(error, OSError) and error.errno in _FULL:
            return errors.DiskFull()
        log.error(
            "request %s failed: %s %s", self._id, scope["method"], scope["path"],
            exc_info=error, extra={"action": "request_failed"},
        )  # fmt: skip
        return errors.RunyardError(
            "the yard failed to answer this request", f"its log has the reason, under the id {self._id}"
        )
