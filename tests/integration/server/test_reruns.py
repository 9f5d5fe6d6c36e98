"""Runs that are started again, over HTTP."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from runyard.model.roles import Role
from runyard.model.tree import Tree, TreeFile
from tests.integration.server.api import Api, Served


def put(api: Api, data: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert api.put(f"/blobs/{digest}", data).status in (200, 201)
    return digest


def with_code(api: Api, text: bytes) -> dict[str, Any]:
    tree = Tree.build([TreeFile("train.py", put(api, text), len(text), False)])
    put(api, tree.encode())
    return {"tree": tree.digest, "files": 1, "size": len(text), "git": None}


def test_a_run_is_started_again_as_it_was(api: Api) -> None:
    spec = {
        "command": ["python", "train.py", "{lr}"], "params": {"lr": 0.1}, "seed": 3, "name": "first",
        "code": with_code(api, b"print(1)"), "resources": {"cpus": 2}, "tags": ["probe"], "idempotency_key": "rerun-1",
    }  # fmt: skip
    first = api.post("/runs", spec).json["id"]
    reply = api.post(f"/runs/{first}/rerun")
    again = reply.json["id"]
    assert (reply.status, reply.headers["Location"]) == (201, f"/api/v1/runs/{again}")
    assert ["packages" in note for note in reply.json["notes"]] == [True]
    shown, before = api.get(f"/runs/{again}").json, api.get(f"/runs/{first}").json
    assert shown["rerun_of"] == first and before["rerun_of"] is None
    assert shown["spec"].pop("origin")["run"] == first
    assert shown["spec"] == {name: value for name, value in before["spec"].items() if name != "idempotency_key"}
    assert f"again from run {first}" in api.get(f"/runs/{again}/events").json["events"][0]["message"]


def test_values_can_be_changed(api: Api) -> None:
    first = api.submit(command=["true", "{lr}"], params={"lr": 0.1, "model": {"depth": 3}}, seed=3)
    changes = {"params": {"lr": 0.2, "model.depth": 4}, "seed": 9}
    again = api.get(f"/runs/{api.post(f'/runs/{first}/rerun', changes).json['id']}").json
    assert again["params"] == {"lr": 0.2, "model": {"depth": 4}}
    assert again["spec"]["seed"] == 9


def test_several_are_accepted_together_or_not_at_all(api: Api) -> None:
    ids = [api.submit(command=["true", "{n}"], params={"n": n}) for n in range(3)]
    reply = api.post("/runs/rerun", {"ids": ids, "params": {"n": 7}})
    assert (reply.status, reply.json["created"]) == (201, 3)
    assert ["no snapshot of its code" in notes[0] for notes in reply.json["notes"]] == [True] * 3
    assert [api.get(f"/runs/{run}").json["rerun_of"] for run in reply.json["ids"]] == ids
    before = api.get("/runs?limit=1").json["runs"][0]["id"]
    for bad in ({"ids": [*ids, 987654]}, {"ids": [*ids, api.submit()], "params": {"n": 7}}):
        assert api.post("/runs/rerun", bad).status in (400, 404)
    assert api.get("/runs?limit=1").json["runs"][0]["id"] == before + 1  # the one without parameters


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"params": {"lr": 1}}, 400, "has no parameter 'lr'"),
        ({"seed": -1}, 400, "seed"),
        ({"site": "nowhere"}, 400, "there is no site 'nowhere'"),
        ({"command": ["rm"]}, 400, "command"),
        ({"python_env": "none"}, 400, "python_env"),
        ({"python_env": "sync"}, 409, "none was recorded"),
        (b"[]", 400, ""),
    ],
)
def test_bad_changes_are_refused(api: Api, body: Any, status: int, message: str) -> None:
    reply = api.post(f"/runs/{api.submit()}/rerun", body)
    assert (reply.status, message in reply.error["message"]) == (status, True), reply.error


def test_a_run_that_is_not_there(api: Api) -> None:
    assert api.post("/runs/987654/rerun").status == 404


def test_members_start_each_others_runs_in_their_own_name(api: Api, roles: dict[Role, Api]) -> None:
    first = api.submit(env={"A": "1"})
    again = roles[Role.MEMBER].post(f"/runs/{first}/rerun").json["id"]
    shown = api.get(f"/runs/{again}").json
    assert shown["owner"] != api.get(f"/runs/{first}").json["owner"]
    assert shown["spec"]["env"] == {"A": "1"}
    assert roles[Role.VIEWER].post(f"/runs/{first}/rerun").status == 403


def test_what_is_gone_is_refused_in_one_sentence(served: Served) -> None:
    """Though the yard has seen it, and remembers that."""
    api = served.api
    gone = b"print('gone')"
    first = api.post("/runs", {"command": ["python", "train.py"], "code": with_code(api, gone)}).json["id"]
    digest = hashlib.sha256(gone).hexdigest()
    (found,) = (path for path in served.yard.settings.home.rglob(f"*{digest[4:]}*") if path.is_file())
    found.unlink()
    reply = api.post(f"/runs/{first}/rerun")
    assert reply.status == 409
    assert reply.error["message"] == (
        f"run {first} cannot be started again as it was: code: the yard lacks 1 of the tree's files, such as 'train.py'"
    )
