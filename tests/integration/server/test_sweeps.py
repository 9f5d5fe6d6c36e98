"""Sweeps at the HTTP door: what is taken, what is refused and with which words, and who may."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Api, Served

COMMAND = ["train", "{lr}"]
GRID = {"command": COMMAND, "space": {"lr": [0.1, 0.01]}}


@pytest.mark.parametrize(
    ("change", "message", "fix"),
    [
        ({"space": {}}, "space: it is empty", "name a parameter"),
        ({"space": {"lr": []}}, "space.lr: there is no value to choose", "at least one"),
        ({"space": {"lr": ""}}, "space.lr: there is no value to choose", ""),
        ({"space": None}, "space: there is nothing to sweep over", ""),
        ({"space": [1]}, "space: must be a mapping", ""),
        ({"space": {"lr": "1e-5..x"}}, "space.lr: 'x' is not a number", "2..8"),
        ({"space": {"lr": "log:0..1"}}, "space.lr: 0 has no logarithm", ""),
        ({"space": {"lr": "5..1"}}, "space.lr: from 5 to 1 is no range", "from must be less than to"),
        ({"space": {"lr": {"from": 1}}}, "space.lr.to: there is no bound", ""),
        ({"space": {"lr": {"from": "1", "to": 2}}}, "space.lr.from: '1' is not a number", ""),
        ({"space": {"lr": {"from": 1, "too": 2}}}, "unknown field 'too'", "did you mean 'to'?"),
        ({"space": {"lr": {"from": 1, "to": 9, "step": 0}}}, "space.lr.step: 0 is not between", ""),
        ({"space": {"lr": "0.0..1.0"}}, "space.lr: a grid needs steps", "another method"),
        ({"space": {"lr": [1], "m": {"choices": [1], "when": {"opt": 1}}}}, "no parameter 'opt'", ""),
        ({"space": {"lr": [1], "m": {"choices": [1], "when": {"lr": 2}}}}, "lr is never 2", "it is one of: 1"),
        ({"space": {"width": [1]}}, "{lr} is no parameter of every configuration", "params_as"),
        ({"space": {"lr": list(range(1000)), "a": list(range(101))}}, "more than 100,000 configurations", ""),
        ({"spcae": {"lr": [1]}}, "unknown field 'spcae'", "did you mean 'space'?"),
        ({"method": "tpe", "trials": 3}, "tpe needs an objective", "minimize"),
        ({"method": "random"}, "random needs to know how many", "trials"),
        ({"stop": "asha"}, "compares a metric, and none is named", "minimize"),
        ({"stop": "ashe", "minimize": "x"}, "stop.rule: 'ashe' is not known", "did you mean 'asha'?"),
        ({"stop": {"rule": "asha", "last": 0}, "minimize": "x"}, "stop.last: 0 is not a step", "such as 10"),
        ({"stop": {"rule": "asha", "first": 9, "last": 5}, "minimize": "x"}, "stop.last: 5 is before the first", ""),
        ({"minimize": "a", "maximize": "b"}, "there is minimize already", ""),
        ({"minimize": ""}, "minimize: must be a text", "val/loss"),
        ({"reps": 0}, "reps: 0 is not between", ""),
        ({"seed": -1}, "seed: -1", ""),
        ({"configurations": [{"lr": 1}, {"lr": 1}], "space": None}, "is the same as configurations[0]", "reps"),
        ({"array": {"index": 1, "first": 1, "last": 2}}, "unknown field 'array'", ""),
        ({"resources": {"gpus": -1}}, "resources.gpus", ""),
        ({"site": "nowhere"}, "there is no site 'nowhere'", ""),
    ],
)
def test_what_is_no_sweep(api: Api, change: dict[str, Any], message: str, fix: str) -> None:
    for place in ("/sweeps", "/sweeps/plan"):
        reply = api.post(place, {**GRID, **change})
        assert (reply.status, reply.error["code"]) == (400, "invalid")
        assert message in reply.error["message"]
        assert fix in reply.error["fix"]


def test_nothing_of_what_was_refused_is_stored(api: Api) -> None:
    def ids() -> list[list[int]]:
        return [[one["id"] for one in api.get(f"/{kind}").json[kind]] for kind in ("sweeps", "runs")]

    before = ids()
    assert api.post("/sweeps", {**GRID, "after": [987_654]}).status == 400
    assert ids() == before


def test_a_sweep_by_its_number(api: Api, served: Served) -> None:
    done = api.post("/sweeps", {**GRID, "reps": 2, "fresh": True})
    assert done.status == 201
    number, place = done.json["id"], done.headers["Location"]
    assert place == f"/api/v1/sweeps/{number}"
    shown = api.get(f"/sweeps/{number}").json
    assert (shown["state"], shown["runs"]["queued"]) == ("queued", 4)
    assert api.get(f"/runs?sweep={number}").json["runs"][0]["sweep"] == {"id": number, "trial": 2, "rep": 2}
    first = api.get(f"/sweeps/{number}/trials?limit=1").json
    assert (first["trials"][0]["params"], first["next"]) == ({"lr": 0.1}, 1)
    rest = api.get(f"/sweeps/{number}/trials?after=1").json
    assert ([trial["number"] for trial in rest["trials"]], rest["next"]) == ([2], None)
    assert api.get(f"/sweeps/{number}/decisions").json == {"decisions": [], "next": None}
    assert api.get(f"/sweeps/{number}/replay").json == {"decisions": 0, "different": []}
    assert api.post(f"/sweeps/{number}/cancel").status == 202
    served.yard.sweeps.tick()
    assert api.get(f"/sweeps/{number}").json["state"] == "cancelled"
    assert api.post(f"/sweeps/{number}/retry", {"states": ["cancelled"]}).json == {"id": number, "retried": 4}
    assert api.post(f"/sweeps/{number}/retry", {"states": ["running"]}).status == 400
    assert api.post(f"/sweeps/{number}/retry", {"states": []}).status == 400
    assert api.post(f"/sweeps/{number}/retry", {"states": None}).json == {"id": number, "retried": 0}


def test_a_sweep_by_its_name(api: Api) -> None:
    name = "called, so/thus"
    query = urllib.parse.urlencode({"name": name, "sweep": name})
    named, runs = (f"/{place}?{part}" for place, part in zip(("sweeps/named", "runs"), query.split("&"), strict=True))
    assert (api.get(named).status, api.get(runs).status) == (404, 404)
    number = api.post("/sweeps", {**GRID, "name": name, "fresh": True}).json["id"]
    assert api.get(named).json == api.get(f"/sweeps/{number}").json
    of_number = api.get(f"/runs?sweep={number}").json["runs"]
    assert len(of_number) == 2
    assert of_number == api.get(f"/runs?sweep=S{number}").json["runs"] == api.get(runs).json["runs"]
    assert api.get(f"{runs}x").error == {
        "code": "not_found", "message": f"there is no sweep '{name}x'", "fix": f"did you mean '{name}'?",
    }  # fmt: skip
    other = api.post("/sweeps", {**GRID, "name": name, "fresh": True}).json["id"]
    for place in (named, runs):
        assert api.get(place).error["message"] == f"2 sweeps are called '{name}'"
        assert f"S{other}, S{number}" in api.get(place).error["fix"]
    assert api.get("/sweeps/named").status == 400


def test_a_plan_stores_nothing(api: Api) -> None:
    before = len(api.get("/sweeps?limit=1000").json["sweeps"])
    plan = api.post("/sweeps/plan", {**GRID, "reps": 3, "params": {"width": 8}}).json
    assert (plan["trials"], plan["runs"]) == (2, 6)
    assert plan["configurations"] == [{"width": 8, "lr": 0.1}, {"width": 8, "lr": 0.01}]
    assert (plan["sweep"], plan["created"], plan["reused"], plan["differs"]) == (None, 6, 0, [])
    assert len(api.get("/sweeps?limit=1000").json["sweeps"]) == before


def test_what_a_known_sweep_lacks_is_planned_and_done(api: Api) -> None:
    document = {**GRID, "name": "planned", "env": {"A": "1"}}
    number = api.post("/sweeps", document).json["id"]
    changed = {**document, "param2val_list": [{"lr": 0.1}, {"lr": 7}], "space": None, "env": {"A": "2"}}
    plan, done = api.post("/sweeps/plan", changed).json, api.post("/sweeps", changed).json
    for answer in (plan, done):
        assert (answer["created"], answer["reused"], answer["retried"], answer["differs"]) == (1, 2, 0, ["env"])
    assert plan["sweep"] == done["id"] == number
    assert [sweep["id"] for sweep in api.get("/sweeps?name=planned").json["sweeps"]] == [number]


def test_a_metric_may_have_any_name(api: Api) -> None:
    name = "val/lß \u2028 {x}\n%s"
    number = api.post("/sweeps", {**GRID, "minimize": name, "fresh": True}).json["id"]
    assert "val/lß" in api.get(f"/sweeps/{number}").json["objective"]["metric"]


def test_who_may_do_what(api: Api, roles: dict[Role, Api]) -> None:
    member, viewer = roles[Role.MEMBER], roles[Role.VIEWER]
    number = member.post("/sweeps", {**GRID, "fresh": True}).json["id"]
    other = api.new_token("eve", Role.MEMBER)
    assert viewer.get(f"/sweeps/{number}").status == 200
    for place, body in ((f"/sweeps/{number}/cancel", None), (f"/sweeps/{number}/retry", {"states": ["failed"]})):
        assert viewer.post(place, body).status == 403
        assert "belongs to ada" in other.post(place, body).error["message"]
        assert api.post(place, body).status == 202
    assert viewer.post("/sweeps", GRID).status == 403
    assert roles[Role.CALLER].post("/sweeps", GRID).status == 403
    for place in ("", "/trials", "/decisions", "/replay"):
        assert viewer.get(f"/sweeps/999{place}").status == 404


def test_ten_thousand_in_one_call(api: Api) -> None:
    grid = {"command": COMMAND, "space": {"lr": list(range(100)), "a": list(range(100))}, "fresh": True}
    done = api.post("/sweeps", grid)
    assert (done.status, done.json["created"], len(done.json["runs"])) == (201, 10_000, 10_000)
    number = done.json["id"]
    assert api.get(f"/sweeps/{number}/trials?after=9999").json["trials"][0]["params"] == {"lr": 99, "a": 99}
    assert api.post(f"/sweeps/{number}/cancel").status == 202
