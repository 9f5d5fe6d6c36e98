"""Recipes over HTTP: who may call which, what callers see, and what is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Agent, Api, Served
from tests.integration.server.shapes import check_answer

TRAIN: dict[str, Any] = {
    "command": ["train", "{lr}"],
    "description": "a small one",
    "env": {"INSIDE": "not for callers"},
    "schema": {"properties": {"lr": {"type": "number", "maximum": 1}}, "required": ["lr"]},
    "resources": {"cpus": 1},
    "bounds": {"cpus": 2},
    "resources_from": {"cpus": "cpus"},
}


@pytest.fixture(scope="module")
def train(served: Served) -> str:
    assert put(served.api, "train", TRAIN).status == 200
    return "train"


@pytest.fixture(scope="module")
def web(served: Served, train: str) -> Api:
    return caller(served.api, "web-app", [train])


def put(api: Api, name: str, recipe: dict[str, Any], query: str = "") -> Any:
    return api.request("PUT", f"/recipes/{name}{query}", recipe)


def caller(api: Api, name: str, recipes: list[str]) -> Api:
    reply = api.post("/tokens", {"name": name, "role": "caller", "recipes": recipes})
    assert reply.status == 201, reply.body
    assert reply.json["recipes"] == recipes
    return api.as_(reply.json["secret"])


def newest(api: Api) -> int:
    found = api.get("/runs?limit=1").json["runs"]
    return int(found[0]["id"]) if found else 0


def test_a_recipe_is_added_shown_replaced_and_removed(api: Api) -> None:
    made = put(api, "short", {"command": ["one"]})
    assert made.status == 200
    assert (made.json["name"], made.json["default"], made.json["config"]) == ("short", False, {"command": ["one"]})
    check_answer(made.json, "Recipe")
    assert put(api, "short", {"command": ["two"]}).json["config"] == {"command": ["two"]}
    assert api.get("/recipes/short").json["config"] == {"command": ["two"]}
    assert api.request("DELETE", "/recipes/short").status == 204
    assert api.get("/recipes/short").status == api.request("DELETE", "/recipes/short").status == 404


def test_one_recipe_is_the_default_and_stays_it_when_replaced(api: Api) -> None:
    put(api, "d1", {"command": ["x"]}, "?default=true")
    put(api, "d2", {"command": ["x"]}, "?default=true")
    put(api, "d2", {"command": ["y"]})
    defaults = [recipe["name"] for recipe in api.get("/recipes").json["recipes"] if recipe["default"]]
    assert defaults == ["d2"]
    for name in ("d1", "d2"):
        api.request("DELETE", f"/recipes/{name}")


@pytest.mark.parametrize(
    ("name", "recipe", "message"),
    [
        ("x", {"comand": ["x"]}, "recipe: unknown field 'comand'"),
        ("x", {"command": ["x"], "site": "nowhere"}, "site: there is no site 'nowhere'"),
        ("x", {"command": ["x"], "schema": {"$ref": "http://example.org"}}, "leads outside"),
        ("-x", {"command": ["x"]}, "name"),
    ],
)
def test_bad_recipes_are_not_stored(api: Api, name: str, recipe: dict[str, Any], message: str) -> None:
    reply = put(api, name, recipe)
    assert reply.status == 400
    assert message in reply.error["message"]
    assert api.get("/recipes/x").status == 404


def test_a_call_starts_a_run_of_the_caller(api: Api, web: Api, train: str) -> None:
    reply = web.post(f"/recipes/{train}/runs", {"lr": 0.5, "cpus": 2})
    assert reply.status == 201
    run = reply.json["id"]
    assert reply.json["url"] == reply.headers["Location"] == f"/api/v1/recipes/train/runs/{run}"
    shown = api.get(f"/runs/{run}").json
    assert (shown["owner"], shown["recipe"], shown["params"]) == ("web-app", "train", {"lr": 0.5, "cpus": 2})
    assert (shown["resources"]["cpus"], shown["name"]) == (2, "train")
    assert "submitted by web-app as recipe train" in [
        event["message"] for event in api.get(f"/runs/{run}/events").json["events"]
    ]
    assert run in [found["id"] for found in api.get("/runs?recipe=train").json["runs"]]


def test_a_caller_sees_its_own_requests_and_nothing_of_their_inside(api: Api, web: Api, train: str) -> None:
    mine = web.post(f"/recipes/{train}/runs", {"lr": 0.5}).json["id"]
    other = api.post(f"/recipes/{train}/runs", {"lr": 0.5}).json["id"]
    shown = web.get(f"/recipes/{train}/runs/{mine}")
    check_answer(shown.json, "FullRequest")
    assert b"not for callers" not in shown.body
    assert web.get(f"/recipes/{train}/runs/{other}").status == 404
    listed = web.get(f"/recipes/{train}/runs").json["runs"]
    assert mine in [run["id"] for run in listed] and {run["owner"] for run in listed} == {"web-app"}
    assert other in [run["id"] for run in api.get(f"/recipes/{train}/runs").json["runs"]]
    assert [web.get(path).status for path in (f"/runs/{mine}", "/runs", "/sites", f"/recipes/{train}")] == [403] * 4
    assert web.post(f"/runs/{mine}/cancel").status == 403
    assert [recipe["name"] for recipe in web.get("/recipes").json["recipes"]] == ["train"]
    check_answer(web.get("/recipes").json["recipes"][0], "RecipeSummary")


def test_a_caller_waits_for_its_run_and_fetches_its_files(served: Served, agent: Agent, web: Api) -> None:
    put(served.api, "here", {"command": ["x"], "site": agent.site, "callers": ["web-app"]})
    run = web.post("/recipes/here/runs", {}).json["id"]
    (claim,) = agent.sync().claims
    digest = f"sha256:{hashlib.sha256(b'scores').hexdigest()}"
    agent.api.put(f"/blobs/{digest}", b"scores")
    agent.end(claim, outputs=[{"path": "a/scores.json", "size": 6, "digest": digest, "mode": 0o644}])
    shown = web.get(f"/recipes/here/runs/{run}?wait=20").json
    assert (shown["state"], [output["path"] for output in shown["outputs"]]) == ("succeeded", ["a/scores.json"])
    assert web.get(f"/recipes/here/runs/{run}/outputs/a/scores.json").body == b"scores"
    assert web.get(f"/recipes/here/runs/{run}/outputs/b").status == 404
    stranger = caller(served.api, "other-app", ["here"])
    assert stranger.get(f"/recipes/here/runs/{run}/outputs/a/scores.json").status == 404


def test_who_may_call(api: Api, roles: dict[Role, Api], web: Api, train: str) -> None:
    put(api, "closed", {"command": ["x"], "callers": ["bob"]})
    assert roles[Role.MEMBER].post(f"/recipes/{train}/runs", {"lr": 1}).status == 201
    for refused in (roles[Role.MEMBER], web):
        reply = refused.post("/recipes/closed/runs", {})
        assert (reply.status, reply.error["code"]) == (403, "forbidden")
        assert "may not call recipe 'closed'" in reply.error["message"]
    assert roles[Role.CALLER].post(f"/recipes/{train}/runs", {"lr": 1}).status == 403
    assert roles[Role.VIEWER].post(f"/recipes/{train}/runs", {"lr": 1}).status == 403
    assert api.post("/recipes/closed/runs", {}).status == 201


@pytest.mark.parametrize(
    ("name", "body", "status", "message"),
    [
        ("train", b"not json", 400, "the body is not JSON"),
        ("train", b"[1]", 400, "the body must be a JSON object"),
        ("tarin", {"lr": 1}, 404, "there is no recipe 'tarin'"),
        ("train", {"lr": 5}, 400, "params.lr: 5 is more than the maximum 1"),
        ("train", {}, 400, "params.lr: is missing"),
        ("train", {"lr": 1, "cpus": 3}, 400, "params.cpus: 3 cpus is more than the 2 cpus that recipe 'train' allows"),
        (
            "train", {"_run_group_type": "grid", "lr": [0.1, 2]}, 400,
            "runs[1]: params.lr: 2 is more than the maximum 1",
        ),
        ("train", {"_run_group_type": "grid", "lr": list(range(20_000))}, 400, "grid: it has 20,000 configurations"),
        ("train", {"_run_group_type": "grid", "lr": []}, 400, "grid: lr has no values"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["runs", "test"])
def test_bad_requests_are_one_sentence_and_start_nothing(
    api: Api, train: str, name: str, body: Any, status: int, message: str, verb: str
) -> None:
    before = newest(api)
    reply = api.request("POST", f"/recipes/{name}/{verb}", body)
    assert (reply.status, reply.error["message"][: len(message)]) == (status, message)
    assert "\n" not in reply.error["message"]
    assert newest(api) == before


def test_a_test_shows_the_first_run_and_stores_nothing(api: Api, train: str) -> None:
    before = newest(api)
    planned = api.post(f"/recipes/{train}/test", {"_run_group_type": "grid", "lr": [0.1, 0.2], "cpus": [1, 2]}).json
    assert (planned["runs"], planned["first"]["argv"]) == (4, ["train", "0.1"])
    check_answer(planned["first"], "Plan")
    assert newest(api) == before


def test_all_runs_of_a_grid_are_stored_in_order(api: Api, train: str) -> None:
    reply = api.post(f"/recipes/{train}/runs", {"_run_group_type": "grid", "lr": [0.1, 0.2], "note": ["a", "b"]})
    assert (reply.status, reply.json["created"]) == (201, 4)
    found = {run["id"]: run["params"] for run in api.get(f"/recipes/{train}/runs?limit=4").json["runs"]}
    params = [found[number] for number in reply.json["ids"]]
    assert [(item["lr"], item["note"]) for item in params] == [(0.1, "a"), (0.2, "a"), (0.1, "b"), (0.2, "b")]


@pytest.mark.parametrize("body", [{"lr": 0.25}, {"_run_group_type": "grid", "lr": [0.25, 0.75]}])
def test_a_repeated_key_gives_the_first_runs_whatever_became_of_the_recipe(api: Api, body: dict[str, Any]) -> None:
    put(api, "changing", TRAIN)
    key = {"Idempotency-Key": str(body) * 20}
    first = api.request("POST", "/recipes/changing/runs", body, key)
    put(api, "changing", {"command": ["other", "{lr}"], "schema": {"properties": {"lr": {"type": "string"}}}})
    again = api.request("POST", "/recipes/changing/runs", body, key)
    assert (first.status, again.status) == (201, 200)
    name = "ids" if "ids" in first.json else "id"
    assert again.json[name] == first.json[name]
    other = api.request("POST", "/recipes/changing/runs", {"lr": "another"}, key)
    assert (other.status, other.error["code"]) == (409, "conflict")
    api.request("DELETE", "/recipes/changing")
