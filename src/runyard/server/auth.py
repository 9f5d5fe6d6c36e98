"""Roles, tokens and the Host header of requests."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from starlette.types import Scope

from runyard import errors
from runyard.model.roles import Caller, Role

Headers = Iterable[tuple[bytes, bytes]]


class Access(enum.StrEnum):
    """The lowest role that a route requires."""

    PUBLIC = "none"  # no token: the documentation
    ANY = "any token"
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    AGENT = "agent"
    UPLOADER = "member or agent"
    CALLER = "caller"  # sees recipes, and its own requests
    REQUESTER = "member or caller"


_ALLOWED: dict[Access, frozenset[Role]] = {
    Access.PUBLIC: frozenset(Role),
    Access.ANY: frozenset(Role),
    Access.VIEWER: frozenset({Role.ADMIN, Role.MEMBER, Role.VIEWER}),
    Access.MEMBER: frozenset({Role.ADMIN, Role.MEMBER}),
    Access.ADMIN: frozenset({Role.ADMIN}),
    Access.AGENT: frozenset({Role.ADMIN, Role.AGENT}),
    Access.UPLOADER: frozenset({Role.ADMIN, Role.MEMBER, Role.AGENT}),
    Access.CALLER: frozenset({Role.ADMIN, Role.MEMBER, Role.VIEWER, Role.CALLER}),
    Access.REQUESTER: frozenset({Role.ADMIN, Role.MEMBER, Role.CALLER}),
}


def check_role(caller: Caller, access: Access) -> None:
    if caller.role not in _ALLOWED[access]:
        raise errors.Forbidden(
            f"this needs the role {access.value}; your token {caller.name!r} has {caller.role.value}",
            "ask an admin of this yard for a token with that role",
        )


def find_secret(headers: Headers) -> str:
    """The token of `Authorization: Bearer …` or `X-Token: …`. Looked up by its SHA-256, never compared as text."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, secret = value.partition(b" ")
            if scheme.lower() == b"bearer" and secret:
                return secret.strip().decode("latin-1")
        elif name == b"x-token" and value:
            return value.decode("latin-1")
    raise errors.Unauthorized(
        "this request carries no token", "send Authorization: Bearer <token>; `runyard token` shows yours"
    )


class HostCheck:
    """Refuses requests for other names, so that a web page cannot reach the yard by pointing its own name at 127.0.0.1.

    An address is fine when it is the one the connection came in on: only names can be pointed elsewhere.
    """

    def __init__(self, configured: str, allowed: Iterable[str]) -> None:
        names = ("localhost", "127.0.0.1", "::1", configured, *allowed)
        self._names = frozenset(name.lower() for name in names) - {"", "0.0.0.0", "::"}

    def check(self, scope: Scope) -> None:
        given = [value for name, value in scope["headers"] if name == b"host"]
        if len(given) != 1:
            raise errors.Forbidden(f"this request has {len(given)} Host headers", "send exactly one")
        name = _without_port(given[0].decode("latin-1").lower())
        if name not in self._names and name != _own_address(scope):
            raise errors.Forbidden(
                f"this yard does not answer to the name {name[:80]!r}",
                "add it to allowed_hosts in its config.toml or RUNYARD_ALLOWED_HOSTS, or use the address it listens on",
            )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _own_address(scope: Scope) -> str | None:
    server = scope.get("server")
    return str(server[0]) if server else None
