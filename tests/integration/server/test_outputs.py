from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Agent, Api, Reply, Served

CONTENT = bytes(range(256)) * 100


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def leave(agent: Agent, *paths: str, data: bytes = CONTENT) -> int:
    """A run that ended and left this content at these paths."""
    claim = agent.start()
    digest = digest_of(data)
    assert agent.api.put(f"/blobs/{digest}", data).status in (200, 201)
    agent.end(claim, outputs=[{"path": path, "size": len(data), "digest": digest, "mode": 0o644} for path in paths])
    return claim.key.run


def fetch(api: Api, run: int, path: str, **headers: str) -> Reply:
    return api.get(f"/runs/{run}/outputs/{quote(path)}", **headers)


def test_outputs_are_listed_and_downloaded(api: Api, agent: Agent) -> None:
    run = leave(agent, "model.bin", "plots/loss curve ü.png")
    listed = api.get(f"/runs/{run}/outputs").json["outputs"]
    assert {output["path"] for output in listed} == {"model.bin", "plots/loss curve ü.png"}
    assert listed[0] | {"path": ""} == {
        "path": "", "size": len(CONTENT), "digest": digest_of(CONTENT), "mode": 0o644, "attempt": 1,
    }  # fmt: skip
    reply = fetch(api, run, "plots/loss curve ü.png")
    assert (reply.status, reply.body) == (200, CONTENT)
    assert reply.headers["ETag"] == f'"{digest_of(CONTENT)}"'
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    shown = reply.headers["Content-Disposition"]
    assert shown == "attachment; filename=\"loss curve _.png\"; filename*=UTF-8''loss%20curve%20%C3%BC.png"


def test_parts_and_unchanged_files(api: Api, agent: Agent) -> None:
    run = leave(agent, "model.bin")
    part = fetch(api, run, "model.bin", Range="bytes=10-19")
    assert (part.status, part.body) == (206, CONTENT[10:20])
    tag = f'"{digest_of(CONTENT)}"'
    assert fetch(api, run, "model.bin", If_None_Match=tag).status == 304
    assert fetch(api, run, "model.bin", Range="bytes=0-0", If_Range=tag).status == 206
    assert fetch(api, run, "model.bin", Range="bytes=0-0", If_Range='"other"').body == CONTENT
    assert fetch(api, run, "model.bin", Range=f"bytes={len(CONTENT)}-").status == 416
    assert api.request("HEAD", f"/runs/{run}/outputs/model.bin").headers["Content-Length"] == str(len(CONTENT))


def test_an_empty_file(api: Api, agent: Agent) -> None:
    run = leave(agent, "empty", data=b"")
    assert (fetch(api, run, "empty").status, fetch(api, run, "empty").body) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["../token", "../../../../etc/passwd", "/etc/passwd", "model.bin/../model.bin", "MODEL.BIN", "model.bin/", ""],
)
def test_only_recorded_paths_are_served(api: Api, agent: Agent, path: str) -> None:
    run = leave(agent, "model.bin")
    for written in (path, quote(path, safe=""), quote(path, safe="").replace(".", "%2e")):
        reply = api.get(f"/runs/{run}/outputs/{written}")
        assert reply.status in (400, 404), written
        assert reply.error["message"]


def test_a_name_cannot_break_out_of_the_header(api: Api, agent: Agent) -> None:
    run = leave(agent, 'a"; x="\r\nSet-Cookie: y=1')
    reply = fetch(api, run, 'a"; x="\r\nSet-Cookie: y=1')
    assert reply.status == 200
    assert "Set-Cookie" not in reply.headers
    assert reply.headers["Content-Disposition"].startswith('attachment; filename="a__ x____Set-Cookie_ y_1";')


def test_blobs_by_digest(api: Api, roles: dict[Role, Api]) -> None:
    data = os.urandom(3 << 20)  # larger than the limit of JSON bodies
    path = f"/blobs/{digest_of(data)}"
    assert api.request("HEAD", path).status == 404
    stored = roles[Role.AGENT].put(path, data)
    assert (stored.status, stored.json) == (201, {"digest": digest_of(data), "size": len(data)})
    assert roles[Role.MEMBER].put(path, data).status == 200
    assert roles[Role.AGENT].get(path).body == data
    assert api.request("HEAD", path).headers["Content-Length"] == str(len(data))
    assert api.get(path, Range="bytes=-5").body == data[-5:]


def test_wrong_bytes_leave_no_trace(served: Served, api: Api) -> None:
    digest = digest_of(b"these")
    reply = api.put(f"/blobs/{digest}", b"those")
    assert (reply.status, digest_of(b"those") in reply.error["message"]) == (400, True)
    assert api.get(f"/blobs/{digest}").status == 404
    assert files(served.yard.settings.home / "blobs" / "incoming") == []


def test_an_upload_that_breaks_off_leaves_no_trace(served: Served, api: Api) -> None:
    incoming = served.yard.settings.home / "blobs" / "incoming"
    import socket
    import time
    from urllib.parse import urlsplit

    place = urlsplit(api.url)
    with socket.create_connection((place.hostname, place.port), timeout=90) as connection:
        head = (
            f"PUT /api/v1/blobs/{digest_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n"
        )
        connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode() + b"x" * 1000)
        deadline = time.monotonic() + 90
        while not files(incoming) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert files(incoming)
    while files(incoming) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert files(incoming) == []


@pytest.mark.parametrize(
    "digest",
    ["x", "sha256:", "sha256:../../token", f"sha256:{'A' * 64}", f"md5:{'0' * 64}", f"sha256:{'0' * 65}", "%2e%2e"],
)
def test_only_digests_are_looked_up(api: Api, digest: str) -> None:
    for method in ("GET", "PUT"):
        assert api.request(method, f"/blobs/{digest}", b"x" if method == "PUT" else None).status in (400, 404)


def files(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))
