"""What programs of the Training Runs server sent still works, and is answered as they expect."""

from __future__ import annotations

import email.utils
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from runyard.server.schemas import training_runs as shapes
from tests.integration.server.api import Agent, Api, Reply, Served
from tests.integration.server.shapes import check_answer

GRID = json.loads((Path(__file__).parents[3] / "examples" / "ic-train" / "grid.json").read_text())
RUN = {"batch_size": 32, "model": {"learning_rate": 0.001}}
JSON = {"Content-Type": "application/json"}


class Old:
    """Asks outside /api/v1, with and without a token."""

    def __init__(self, served: Served) -> None:
        self.served, self.place = served, urlsplit(served.api.url).netloc

    def __call__(self, method: str, path: str, body: Any = None, *, token: bool = True, **headers: str) -> Reply:
        own = {"X-Token": str(self.served.api.token)} if token else {}
        sent = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.place, timeout=90)
        try:
            connection.request(method, path, data, sent)
            with connection.getresponse() as response:
                return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    @property
    def count(self) -> int:
        return sum(self.served.api.get("/health").json["runs"].values())


def add_recipes(api: Api) -> None:
    api.request("PUT", "/recipes/ic-train?default=true", {"command": ["train"]})
    api.request("PUT", "/recipes/other", {"command": ["other"]})
    api.request("PUT", "/recipes/closed", {"command": ["other"], "callers": ["nobody"]})


@pytest.fixture(scope="module")
def old(served: Served) -> Old:
    add_recipes(served.api)
    return Old(served)


@pytest.fixture
def trusting(serve_yard: Callable[..., Served]) -> Iterator[Old]:
    served = serve_yard(trusted_networks=["127.0.0.0/8"])
    add_recipes(served.api)
    yield Old(served)


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("path", ["/", "/request"])
def test_a_configuration_starts_the_default_recipe(old: Old, method: str, path: str) -> None:
    reply = old(method, path, RUN)
    assert reply.status == 200
    run = old.served.api.get(f"/runs/{reply.json['id']}").json
    assert (run["recipe"], run["params"]) == ("ic-train", RUN)
    check_answer(reply.json, shapes.STARTED)
    assert reply.json["run_request"] == RUN
    assert reply.json["url"] == f"/api/v1/recipes/ic-train/runs/{run['id']}"
    assert reply.json["processed_request"].endswith(" GMT")
    assert email.utils.parsedate_to_datetime(reply.json["processed_request"]).tzinfo is not None


def test_another_recipe_by_its_name(old: Old) -> None:
    reply = old("POST", "/request/other", {})
    assert old.served.api.get(f"/runs/{reply.json['id']}").json["recipe"] == "other"


def test_a_grid_is_expanded_here_in_one_commit(old: Old) -> None:
    before = old.count
    reply = old("POST", "/request", GRID)
    ids = reply.json["ids"]
    assert len(ids) == 72 and old.count == before + 72
    assert reply.json["run_request"] == GRID
    shown = old("GET", reply.json["url"]).json["runs"]
    assert sorted(run["id"] for run in shown) == ids
    sizes = {run["id"]: run["params"]["batch_size"] for run in shown}
    assert [sizes[number] for number in ids[:5]] == [16, 32, 64, 128, 16]


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "text/plain", "application/json"])
def test_bodies_are_json_whatever_they_are_called(old: Old, media_type: str) -> None:
    assert old("POST", "/request", RUN, Content_Type=media_type).status == 200


def test_a_web_page_may_send_only_json(old: Old) -> None:
    page = "http://evil.example"
    before = old.count
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        reply = old("POST", "/request", RUN, Origin=page, Content_Type=media_type)
        assert (reply.status, old.count) == (403, before)
    assert old("POST", "/request", RUN, Origin=page, Content_Type="application/json; charset=utf-8").status == 200
    assert old("OPTIONS", "/request", Origin=page).status == 405


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/request", b"a=1&b=2", 400, "the body is not JSON"),
        ("/request", b"", 400, "the body is not JSON"),
        ("/request", b'["grid"]', 400, "the body must be a JSON object"),
        ("/request/nothing", b"{}", 404, "there is no recipe 'nothing'"),
        ("/request", b'{"_run_group_type": "random"}', 400, "_run_group_type: 'random' is not known"),
    ],
)
def test_bad_requests(old: Old, path: str, body: bytes, status: int, message: str) -> None:
    before = old.count
    reply = old("POST", path, body)
    assert (reply.status, reply.error["message"][: len(message)]) == (status, message)
    assert old.count == before


def test_without_a_default_recipe(serve_yard: Callable[..., Served]) -> None:
    reply = Old(serve_yard())("POST", "/request", RUN)
    assert (reply.status, reply.error["message"]) == (404, "this yard has no default recipe")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/"), ("PUT", "/request"), ("POST", "/request/other"), ("GET", "/status")]
)
def test_without_a_token_the_answer_names_the_line_that_would_trust_the_network(
    old: Old, method: str, path: str
) -> None:
    before = old.count
    reply = old(method, path, RUN if method != "GET" else None, token=False)
    assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert 'in config.toml: trusted_networks = ["127.0.0.0/8"]' in reply.error["fix"]
    assert old.count == before


def test_a_trusted_network_calls_recipes_and_nothing_else(trusting: Old) -> None:
    reply = trusting("POST", "/request", RUN, token=False)
    assert reply.status == 200
    assert trusting.served.api.get(f"/runs/{reply.json['id']}").json["owner"] == "trusted-network"
    assert trusting("GET", reply.json["url"], token=False).json["params"] == RUN
    mine = trusting("POST", "/request", RUN).json["url"]
    assert trusting("GET", mine, token=False).status == 404
    assert trusting("POST", "/request/closed", {}, token=False).status == 403
    for path in ("/api/v1/runs", "/api/v1/sites", "/api/v1/me", "/api/v1/recipes/ic-train"):
        assert trusting("GET", path, token=False).status == 401
    assert trusting("POST", "/api/v1/runs", {"command": ["true"]}, token=False).status == 401
    assert trusting("DELETE", "/api/v1/recipes/other", token=False).status == 401


def test_trust_is_not_lent_to_others(trusting: Old) -> None:
    """Neither to a wrong token, nor through a proxy, nor to a page in a browser of the network, nor by another name."""
    before = trusting.count
    assert trusting("POST", "/request", RUN, token=False, X_Token="wrong").status == 401
    for name in ("X_Forwarded_For", "Forwarded", "X_Real_IP", "Via"):
        reply = trusting("POST", "/request", RUN, token=False, **{name: "10.0.0.1"})
        assert reply.status == 401 and "proxy" in reply.error["fix"]
    for path in ("/request", "/api/v1/recipes/ic-train/runs"):
        sent = {"Origin": "http://evil.example", "Content_Type": "text/plain"}
        assert trusting("POST", path, RUN, token=False, **sent).status == 403
    assert trusting("POST", "/request", RUN, token=False, Host="evil.example").status == 403
    assert trusting.count == before


def test_another_network_is_not_trusted(serve_yard: Callable[..., Served]) -> None:
    old = Old(serve_yard(trusted_networks=["192.0.2.0/24"]))
    assert old("GET", "/status", token=False).status == 401


def test_the_status_is_true(serve_yard: Callable[..., Served]) -> None:
    served = serve_yard()
    add_recipes(served.api)
    old = Old(served)
    empty = old("GET", "/status").json
    assert empty["registered_workers"] is None and empty["counts"] == {"queued": 0, "starting": 0, "running": 0}
    agent = Agent(served.api, "local", "gpu1")
    first, second = (old("POST", "/request", {"lr": number}).json["id"] for number in (1, 2))
    (claim,) = agent.sync(free=agent.request().free.__class__(cpus=1, memory=1 << 30)).claims
    shown = old("GET", "/status").json
    worker = "gpu1@node1"
    assert shown["registered_workers"] == {worker: ["closed", "ic-train", "other"]}
    assert [task["id"] for task in shown["active_tasks"][worker]] == [str(first)] == [str(claim.key.run)]
    assert [task["id"] for task in shown["queued_tasks"]["runyard@any"]] == [str(second)]
    assert shown["queued_tasks"]["runyard@any"][0]["args"] == [{"lr": 2}]
    assert shown["scheduled_tasks"] == {worker: []}
    assert shown["counts"]["queued"] == 1
    for status in (empty, shown):
        check_answer(status, shapes.STATUS)


def test_the_front_page_is_for_people_and_for_programs(old: Old) -> None:
    for accept in ("*/*", "text/html,application/xhtml+xml"):
        reply = old("GET", "/", token=False, Accept=accept)
        assert (reply.status, reply.headers["Location"]) == (307, "/api/v1/docs")
    assert old("GET", "/", Accept="application/json").json.keys() == old("GET", "/status").json.keys()
    assert old("GET", "/", token=False, Accept="application/json").status == 401
