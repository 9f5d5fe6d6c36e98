from __future__ import annotations

import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from sqlalchemy import create_engine, text

from runyard.model.roles import Role
from runyard.server.auth import Access
from runyard.server.route import Route
from runyard.server.routes import ROUTES
from runyard.store.engine import parse_url
from tests.integration.server.api import PREFIX, Api, Served
from tests.labs import waiting

PROTECTED = [row for row in ROUTES if row.access is not Access.PUBLIC]
MAY: dict[Access, set[Role]] = {
    Access.ANY: set(Role),
    Access.VIEWER: {Role.ADMIN, Role.MEMBER, Role.VIEWER},
    Access.MEMBER: {Role.ADMIN, Role.MEMBER},
    Access.ADMIN: {Role.ADMIN},
    Access.AGENT: {Role.ADMIN, Role.AGENT},
    Access.UPLOADER: {Role.ADMIN, Role.MEMBER, Role.AGENT},
    Access.CALLER: {Role.ADMIN, Role.MEMBER, Role.VIEWER, Role.CALLER},
    Access.REQUESTER: {Role.ADMIN, Role.MEMBER, Role.CALLER},
}


def name(row: Route) -> str:
    return f"{row.method} {row.place}"


def example(row: Route) -> str:
    """An address of the route that changes nothing."""
    values = {"id": "987654", "run": "987654", "attempt": "1", "digest": f"sha256:{'0' * 64}", "name": "nowhere"}
    return re.sub(r"{(\w+)(:\w+)?}", lambda match: values.get(match[1], "x"), row.path)


@pytest.mark.parametrize("row", PROTECTED, ids=name)
def test_every_route_wants_a_token(api: Api, row: Route) -> None:
    for token in (None, "wrong", "ry_" + "x" * 43, "", "caf\xe9"):
        reply = api.as_(token).request(row.method, example(row), b"{}" if row.body else None, prefix=row.prefix)
        assert (reply.status, reply.error["code"]) == (401, "unauthorized")
        assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("row", PROTECTED, ids=name)
def test_every_route_checks_the_role(roles: dict[Role, Api], row: Route) -> None:
    for role, api in roles.items():
        status = api.request(row.method, example(row), b"{}" if row.body else None, prefix=row.prefix).status
        assert (status == 403) == (role not in MAY[row.access]), f"{role}: {status}"


def test_token_in_either_header(api: Api) -> None:
    assert api.as_(None).get("/me", X_Token=str(api.token)).status == 200
    assert api.as_(None).get("/me", Authorization=f"bearer {api.token}").status == 200
    assert api.as_(None).get("/me", Authorization=f"Basic {api.token}").status == 401


def test_a_revoked_token_is_of_no_use(api: Api) -> None:
    made = api.post("/tokens", {"name": "bob", "role": "member"}).json
    bob = api.as_(made["secret"])
    assert bob.get("/me").json == {"name": "bob", "role": "member", "site": None, "recipes": []}
    assert api.request("DELETE", f"/tokens/{made['id']}").status == 204
    assert bob.get("/me").status == 401


def test_a_token_that_the_store_is_slow_to_find_holds_up_nobody_else(
    serve_yard: Callable[..., Served], postgres_store: str
) -> None:
    """As where PostgreSQL's machine answers nothing at all."""
    served = serve_yard(store=postgres_store)
    engine = create_engine(parse_url(postgres_store))
    waits = text("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'tokens'::regclass")
    with ThreadPoolExecutor(1) as executor, engine.connect() as holder:
        holder.execute(text("LOCK TABLE tokens"))
        asked = executor.submit(served.api.get, "/me")
        waiting.until(lambda: holder.execute(waits).first(), "somebody asks for a token")
        assert served.api.as_(None).get("/openapi.json").status == 200
        assert not asked.done()
        holder.rollback()
        assert asked.result(90).status == 200
    engine.dispose()


def test_secrets_are_shown_once(api: Api) -> None:
    made = api.post("/tokens", {"name": "carol", "role": "viewer"})
    listed = api.get("/tokens")
    assert made.json["secret"].encode() not in listed.body
    assert "carol" in [token["name"] for token in listed.json["tokens"]]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "x", "role": "king"},
        {"name": "../x", "role": "member"},
        {"name": "x", "role": "agent"},
        {"name": "x", "role": "member", "recipes": ["y"]},
        {"name": "x", "role": "caller", "recipes": ["nowhere"]},
        {"name": "trusted-network", "role": "caller"},
    ],
)
def test_bad_tokens_are_not_made(api: Api, body: dict[str, str]) -> None:
    assert api.post("/tokens", body).status == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:9090", "[::1]:9090", "lab.example"])
def test_own_names_are_answered(serve_yard: Callable[..., Served], host: str) -> None:
    served = serve_yard(allowed_hosts=["lab.example"])
    assert served.api.get("/me", Host=host).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9090", "10.0.0.1", ""]
)
@pytest.mark.parametrize("path", ["/me", "/docs", "/openapi.json", "/nothing"])
def test_other_names_are_refused(api: Api, host: str, path: str) -> None:
    reply = api.get(path, Host=host)
    assert (reply.status, reply.error["code"]) == (403, "forbidden")
    assert "RUNYARD_ALLOWED_HOSTS" in reply.error["fix"], "before a container its own address is a name like others"


def test_two_host_headers_are_refused(api: Api) -> None:
    place = urlsplit(api.url)
    with socket.create_connection((place.hostname, place.port), timeout=90) as connection:
        connection.sendall(f"GET {PREFIX}/docs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".encode())
        assert connection.recv(4096).startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))


def test_the_address_of_the_connection_is_answered(serve_yard: Callable[..., Served]) -> None:
    served = serve_yard(host="0.0.0.0")
    assert served.api.url.startswith("http://127.0.0.1:")
    port = urlsplit(served.api.url).port
    api = Api(f"http://127.0.0.2:{port}", served.api.token)
    assert api.get("/me").status == 200
    assert api.get("/me", Host="127.0.0.3").status == 403


def test_a_failure_inside_shows_no_traceback(
    serve_yard: Callable[..., Served], caplog: pytest.LogCaptureFixture
) -> None:
    served = serve_yard()
    served.yard.store.write(lambda connection: connection.execute(text("ALTER TABLE runs RENAME TO gone"))).result()
    reply = served.api.get("/runs")
    assert reply.status == 500
    assert reply.json.keys() == {"error"} and reply.error["code"] == "error"
    assert b"Traceback" not in reply.body and b"gone" not in reply.body and b"sql" not in reply.body.lower()
    number = reply.headers["X-Request-Id"]
    assert number in reply.error["fix"]
    assert [record for record in caplog.records if number in record.getMessage() and record.exc_info]


def test_pages_of_other_sites_get_no_permission(api: Api) -> None:
    reply = api.request("GET", "/me", headers={"Origin": "https://evil.example"})
    assert not [header for header in reply.headers if header.lower().startswith("access-control")]
    assert api.request("OPTIONS", "/runs", headers={"Origin": "https://evil.example"}).status == 405
