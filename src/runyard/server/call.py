"""One request in a handler."""

from __future__ import annotations

from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from runyard.model import json_text
from runyard.model.declaration import Declared
from runyard.model.roles import Caller
from runyard.server import body
from runyard.server.service import Service

PARSED_INLINE = 64 << 10  # bytes of JSON that take less time to parse than to pass to a thread
Sent = TypeVar("Sent", bound=Declared)


class Call:
    """The caller, the validated parameters by name, and the body on demand."""

    __slots__ = ("_caller", "is_small", "receive", "scope", "service", "values")

    def __init__(
        self, service: Service, scope: Scope, receive: Receive, caller: Caller | None, values: dict[str, Any]
    ) -> None:
        self.service, self.scope, self.receive, self.values = service, scope, receive, values
        self._caller = caller
        self.is_small = True  # its body, when that was read as JSON

    @property
    def caller(self) -> Caller:
        if self._caller is None:
            raise AssertionError("a public route has no caller")
        return self._caller

    @property
    def headers(self) -> Headers:
        return Headers(scope=self.scope)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    async def bytes(self, limit: int) -> bytes:
        return await body.read(self.scope, self.receive, limit)

    async def parse(self, kind: type[Sent]) -> Sent:
        """The body, by its declared fields."""
        return kind.parse(await self.json())

    async def json(self) -> dict[str, Any]:
        data = await self.bytes(self.service.yard.settings.body_limit)
        self.is_small = len(data) <= PARSED_INLINE
        if self.is_small:
            return json_text.parse_object(data)
        return await self.service.read(json_text.parse_object, data)
