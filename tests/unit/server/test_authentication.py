from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.server.authentication import _offer, _peer, check_origin


def scope(client: str | None, method: str = "POST", **headers: str) -> dict[str, Any]:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": (client, 1) if client else None, "method": method, "headers": sent}


@pytest.mark.parametrize(
    ("client", "line"),
    [
        ("192.168.1.17", 'trusted_networks = ["192.168.1.0/24"]'),
        ("10.2.3.4", 'trusted_networks = ["10.2.3.0/24"]'),
        ("127.0.0.1", 'trusted_networks = ["127.0.0.0/8"]'),
        ("8.8.8.8", 'trusted_networks = ["8.8.8.8/32"]'),
        ("::1", 'trusted_networks = ["::1/128"]'),
        ("fd00::7", 'trusted_networks = ["fd00::/64"]'),
        ("::ffff:192.168.1.17", 'trusted_networks = ["192.168.1.0/24"]'),
        ("fe80::1%eth0", 'trusted_networks = ["fe80::/64"]'),
    ],
)
def test_the_line_that_would_trust_the_network(client: str, line: str) -> None:
    assert _offer(_peer(scope(client))).endswith(f"in config.toml: {line}")


@pytest.mark.parametrize("name", ["forwarded", "x_forwarded_for", "x_real_ip", "via"])
def test_behind_a_proxy_nobody_knows_the_address(name: str) -> None:
    assert _peer(scope("192.168.1.17", **{name: "192.168.1.5"})) is None


@pytest.mark.parametrize("client", [None, "", "testclient"])
def test_no_address_is_no_peer(client: str | None) -> None:
    assert _peer(scope(client)) is None


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_page_that_sends_something_else_than_json(media_type: str) -> None:
    with pytest.raises(errors.Forbidden):
        check_origin(scope("127.0.0.1", origin="http://evil.example", content_type=media_type))


def test_what_is_no_page_or_cannot_change_anything() -> None:
    check_origin(scope("127.0.0.1", content_type="text/plain"))
    check_origin(scope("127.0.0.1", origin="http://x", content_type="Application/JSON; charset=utf-8"))
    check_origin(scope("127.0.0.1", "GET", origin="http://x"))
