from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.integration.server.api import PREFIX, Api


def post_bytes(api: Api, body: bytes) -> tuple[int, dict[str, str]]:
    reply = api.request("POST", "/runs", body)
    return reply.status, reply.error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"command": ["true"],\n "name" "x"}', "line 2, column 9"),
        (b"", "line 1, column 1"),
        (b"command: [true]", "not JSON"),
        (b'{"command": ["\xff"]}', "not UTF-8: byte 14 is 0xff"),
        (b'["true"]', "must be a JSON object"),
        (b'"true"', "must be a JSON object"),
        (b'{"command": ["true"], "params": {"lr": NaN}}', "NaN is not a JSON number"),
        (b'{"command": ["true"], "params": {"lr": -Infinity}}', "-Infinity is not a JSON number"),
        (b'{"command": ["true"], "params": {"lr": 1e999}}', "too large: 1e999"),
        (b'{"command": ["true"], "name": "a", "name": "b"}', "names 'name' twice"),
        (b'{"command": ["true"], "seed": ' + b"9" * 5000 + b"}", "a number of too many digits"),
        (b'{"command": ["true"], "params": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
        (b'{"command": ["true"], "params": {"x": ' + b"[" * 63 + b"]" * 63 + b"}}", "nested too deeply"),
        (b'{"runs": []}', "runs: must be a list"),
        (b'{"runs": {"command": ["true"]}}', "runs: must be a list"),
        (b'{"runs": [{"command": ["true"]}], "project": "x"}', "unknown field 'project'"),
        (b'{"runs": ["true"]}', "runs[0]: run: must be a mapping"),
    ],
)
def test_bodies_that_are_not_a_run(api: Api, body: bytes, message: str) -> None:
    status, error = post_bytes(api, body)
    assert (status, error["code"]) == (400, "invalid")
    assert message in error["message"]


@pytest.mark.parametrize(
    ("spec", "message", "fix"),
    [
        ({}, "no command", ""),
        ({"command": ["true"], "resorces": {}}, "unknown field 'resorces'", "did you mean 'resources'?"),
        ({"command": ["true"], "resources": {"cpus": 0}}, "resources.cpus: 0", ""),
        ({"command": ["true"], "resources": {"memory": "-4G"}}, "resources.memory", ""),
        ({"command": ["true"], "resources": {"memory": 1 << 80}}, "resources.memory", ""),
        ({"command": ["true"], "resources": {"gpus": 10**9}}, "resources.gpus", ""),
        ({"command": ["true"], "site": "nowhere"}, "there is no site 'nowhere'", ""),
        ({"command": ["true"], "after": [987654]}, "there is no run 987654", ""),
        ({"command": ["echo", "{x}"], "params": {"y": 1}}, "no parameter 'x'", ""),
    ],
)
def test_specs_that_cannot_be(api: Api, spec: dict[str, object], message: str, fix: str) -> None:
    status, error = post_bytes(api, json.dumps(spec).encode())
    assert status == 400
    assert message in error["message"] and fix in error["fix"]


def test_a_body_that_says_it_is_too_large_is_refused_unread(api: Api) -> None:
    place = urlsplit(api.url)
    with socket.create_connection((place.hostname, place.port), timeout=90) as connection:
        head = f"POST {PREFIX}/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n"
        connection.sendall(f"{head}Content-Length: {1 << 50}\r\n\r\n".encode())
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_in_chunks_is_counted(api: Api) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * (64 << 10)

    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=90)
    headers = {"Authorization": f"Bearer {api.token}", "Transfer-Encoding": "chunked"}
    connection.request("POST", f"{PREFIX}/runs", chunks(), headers, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"]["code"] == "too_large"
    connection.request("GET", f"{PREFIX}/me", headers={"Authorization": f"Bearer {api.token}"})
    assert connection.getresponse().status == 200  # the rest of the body was not taken for another request
    connection.close()


def test_a_body_just_below_the_limit_is_read(api: Api) -> None:
    spec = json.dumps({"command": ["true"]}).encode()
    assert api.request("POST", "/runs", spec + b" " * ((1 << 20) - len(spec))).status == 201
    assert api.request("POST", "/runs", spec + b" " * ((1 << 20) - len(spec) + 1)).status == 413


@pytest.mark.parametrize("path", ["/nothing", "/runs/", "/runs/1/nothing", "/../token", "/docs/../../../token"])
def test_unknown_paths(api: Api, path: str) -> None:
    reply = api.get(path)
    assert reply.status in (400, 404) and reply.error["message"]


@pytest.mark.parametrize("run", ["x", "-1", "0", "1.5", "1e3", "9" * 30, "9" * 5000, "%00", "٣"])
def test_run_ids_that_are_no_numbers(api: Api, run: str) -> None:
    from urllib.parse import quote

    reply = api.get(f"/runs/{quote(run, safe='%')}")
    assert reply.status == 400 and reply.error["message"].startswith("id: ")


def test_wrong_method_names_the_right_ones(api: Api) -> None:
    reply = api.request("DELETE", "/runs")
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert reply.error["message"] == "DELETE is not possible here"


def test_arguments_that_are_no_utf8_survive(api: Api) -> None:
    word = b"caf\xe9".decode("utf-8", "surrogateescape")
    run = api.submit(command=["echo", word])
    assert api.get(f"/runs/{run}").json["command"] == ["echo", word]
