from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.roles import Caller, Role
from runyard.server.auth import _ALLOWED, Access, HostCheck, check_role, find_secret


def scope(*hosts: bytes, server: tuple[str, int] | None = ("127.0.0.1", 9090)) -> dict[str, Any]:
    return {"headers": [(b"host", host) for host in hosts], "server": server}


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"localhost:1",
        b"LocalHost:9090",
        b"127.0.0.1:80",
        b"[::1]:80",
        b"[::1]",
        b"yard.lab:9090",
        b"10.1.2.3",
    ],
)
def test_own_names(host: bytes) -> None:
    HostCheck("10.1.2.3", ["Yard.Lab"]).check(scope(host))


@pytest.mark.parametrize(
    "host", [b"evil", b"localhost.evil", b"", b":9090", b"[::2]", b"127.0.0.1.evil:80", b"0.0.0.0", b"\xff"]
)
def test_other_names(host: bytes) -> None:
    with pytest.raises(errors.Forbidden):
        HostCheck("0.0.0.0", []).check(scope(host))


def test_the_address_that_was_connected_to() -> None:
    check = HostCheck("0.0.0.0", [])
    check.check(scope(b"192.0.2.9:9090", server=("192.0.2.9", 9090)))
    with pytest.raises(errors.Forbidden):
        check.check(scope(b"192.0.2.9:9090", server=None))


@pytest.mark.parametrize("hosts", [(), (b"localhost", b"localhost")])
def test_exactly_one_host_header(hosts: tuple[bytes, ...]) -> None:
    with pytest.raises(errors.Forbidden, match=f"{len(hosts)} Host headers"):
        HostCheck("127.0.0.1", []).check(scope(*hosts))


@pytest.mark.parametrize(
    "headers", [[(b"authorization", b"Bearer s3")], [(b"authorization", b"bearer  s3 ")], [(b"x-token", b"s3")]]
)
def test_where_the_secret_is(headers: list[tuple[bytes, bytes]]) -> None:
    assert find_secret(headers) == "s3"


@pytest.mark.parametrize(
    "headers", [[], [(b"authorization", b"Basic s3")], [(b"authorization", b"Bearer")], [(b"x-token", b"")]]
)
def test_no_secret(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(errors.Unauthorized):
        find_secret(headers)


def test_an_admin_may_everything_and_every_access_is_defined() -> None:
    assert _ALLOWED.keys() == set(Access)
    for access in Access:
        check_role(Caller(name="root", role=Role.ADMIN), access)


def test_refusal_names_both_roles() -> None:
    with pytest.raises(errors.Forbidden, match="needs the role member; your token 'vic' has viewer"):
        check_role(Caller(name="vic", role=Role.VIEWER), Access.MEMBER)
