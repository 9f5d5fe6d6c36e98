"""Authentication: by token and, for recipes only, by trusted network."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import Scope

from runyard import errors
from runyard.model.roles import NETWORK, Caller, Role
from runyard.server.auth import Access, check_role, find_secret
from runyard.yard import Yard

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Behind a proxy, the peer's address is the proxy's, and says nothing about the client.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_FOR_STRANGERS = (Access.CALLER, Access.REQUESTER)


class Authenticator:
    """`look_up` reads the owner of a token from the store, outside the event loop: a store may be slow."""

    def __init__(self, yard: Yard, look_up: Callable[[str], Awaitable[Caller]]) -> None:
        self._yard, self._look_up = yard, look_up
        self._networks = [ipaddress.ip_network(text) for text in yard.settings.trusted_networks]

    async def admit(self, scope: Scope, access: Access) -> Caller:
        """The caller, whose role allows it; raises Unauthorized or Forbidden."""
        try:
            secret = find_secret(scope["headers"])
        except errors.Unauthorized:
            if access not in _FOR_STRANGERS:
                raise
            return self._without_token(scope)
        caller = self._yard.remembered(secret) or await self._look_up(secret)
        check_role(caller, access)
        return caller

    def _without_token(self, scope: Scope) -> Caller:
        peer = _peer(scope)
        if peer is None or not any(peer in network for network in self._networks):
            raise errors.Unauthorized("this request carries no token", _offer(peer))
        check_origin(scope)
        return Caller(name=NETWORK, role=Role.CALLER, any_recipe=True)


def check_origin(scope: Scope) -> None:
    """A page of another site can make a browser post any text, but JSON only with this server's consent."""
    headers = Headers(scope=scope)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] not in ("GET", "HEAD") and "origin" in headers and media_type != "application/json":
        raise errors.Forbidden(
            "a web page may send a request only as JSON", "send Content-Type: application/json, or no Origin header"
        )


def _peer(scope: Scope) -> Address | None:
    """The address of the client; None behind a proxy."""
    headers, client = Headers(scope=scope), scope.get("client")
    if not client or any(name in headers for name in _FORWARDED):
        return None
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _offer(peer: Address | None) -> str:
    token = "send X-Token: <token>"
    if peer is None:
        return f"{token}; a network can be trusted only without a proxy in between"
    return f'{token}, or trust its network with this line in config.toml: trusted_networks = ["{_around(peer)}"]'


def _around(peer: Address) -> str:
    """The network to suggest: this machine, its private network, or a single address."""
    if isinstance(peer, ipaddress.IPv4Address):
        bits = 8 if peer.is_loopback else 24 if peer.is_private else 32
    else:
        bits = 64 if peer.is_private and not peer.is_loopback else 128
    return str(ipaddress.ip_network(f"{peer}/{bits}", strict=False))
