from __future__ import annotations

import hashlib
import threading

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Agent, Api, Served
from tests.labs.waiting import until


def newest(api: Api) -> list[int]:
    return [run["id"] for run in api.get("/runs?limit=1").json["runs"]]


def test_submit_answers_with_the_id_and_where_the_run_is(api: Api) -> None:
    reply = api.post("/runs", {"command": ["echo", "{word}"], "params": {"word": "hi"}, "name": "first"})
    assert reply.status == 201
    run = reply.json["id"]
    assert reply.json == {"id": run, "state": "queued", "url": f"/api/v1/runs/{run}", "created": True}
    assert reply.headers["Location"] == f"/api/v1/runs/{run}"
    shown = api.get(f"/runs/{run}").json
    assert (shown["name"], shown["params"], shown["state"]) == ("first", {"word": "hi"}, "queued")
    assert shown["spec"]["command"] == ["echo", "{word}"]


def test_many_runs_in_one_call(api: Api) -> None:
    reply = api.post("/runs", {"runs": [{"command": ["true"], "name": f"many-{n}"} for n in range(50)]})
    assert reply.status == 201
    ids = reply.json["ids"]
    assert ids == list(range(ids[0], ids[0] + 50)) and reply.json["created"] == 50
    assert api.get(f"/runs/{ids[7]}").json["name"] == "many-7"


def test_one_bad_run_among_many_stores_none(api: Api) -> None:
    before = newest(api)
    good, bad = {"command": ["true"]}, {"command": ["true"], "resources": {"cpus": -1}}
    reply = api.post("/runs", {"runs": [good, good, good, bad]})
    assert reply.status == 400
    assert reply.error["message"].startswith("runs[3]: resources.cpus")
    assert newest(api) == before


def test_an_input_that_the_yard_does_not_have_is_refused(api: Api) -> None:
    digest = f"sha256:{hashlib.sha256(b'data').hexdigest()}"
    body = {"command": ["true"], "inputs": [{"digest": digest, "to": "data.csv"}]}
    refused = api.post("/runs", {"runs": [{"command": ["true"]}, body]})
    assert (refused.status, refused.error["message"]) == (
        400, f"runs[1]: inputs: the yard has no file {digest} for 'data.csv'",
    )  # fmt: skip
    assert refused.error["fix"] == f"upload it first: PUT /api/v1/blobs/{digest}"
    assert api.put(f"/blobs/{digest}", b"data").status == 201
    run = api.post("/runs", body).json["id"]
    assert api.get(f"/runs/{run}").json["spec"]["inputs"] == body["inputs"]


def test_idempotency_key_gives_the_first_run_again(api: Api) -> None:
    body = {"command": ["true"], "idempotency_key": "once"}
    first, again = api.post("/runs", body), api.post("/runs", body)
    assert (first.status, again.status) == (201, 200)
    assert again.json == {**first.json, "created": False}
    other = api.post("/runs", {**body, "command": ["false"]})
    assert (other.status, other.error["code"]) == (409, "conflict")


def test_idempotency_key_is_scoped_to_the_caller(api: Api, roles: dict[Role, Api]) -> None:
    body = {"command": ["true"], "idempotency_key": "mine"}
    assert api.post("/runs", body).json["id"] != roles[Role.MEMBER].post("/runs", body).json["id"]


def test_list_filters_and_pages_by_key(api: Api) -> None:
    ids = [api.submit(project="paged", tags=["a" if n % 2 else "b"]) for n in range(5)]
    page = api.get("/runs?project=paged&limit=2").json
    assert [run["id"] for run in page["runs"]] == [ids[4], ids[3]] and page["next"] == ids[3]
    rest = api.get(f"/runs?project=paged&before={page['next']}").json
    assert [run["id"] for run in rest["runs"]] == [ids[2], ids[1], ids[0]] and rest["next"] is None
    tagged = api.get("/runs?project=paged&tag=a").json["runs"]
    assert [run["id"] for run in tagged] == [ids[3], ids[1]]
    chosen = api.get(f"/runs?ids={ids[0]},{ids[3]}-{ids[4]}").json["runs"]
    assert [run["id"] for run in chosen] == [ids[4], ids[3], ids[0]]
    assert api.get("/runs?project=paged&state=failed&state=cancelled").json["runs"] == []
    assert len(api.get("/runs?project=paged&state=failed,queued").json["runs"]) == 5


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("stat=failed", "unknown parameter 'stat'"),
        ("state=broken", "state: 'broken' is not known"),
        ("limit=0", "limit: 0 is not between 1 and 1000"),
        ("limit=many", "limit: 'many' is not a whole number"),
        ("limit=1&limit=2", "limit: given 2 times"),
        (f"before={1 << 70}", "before: "),
        ("ids=9-3", "'9-3' is not a range"),
    ],
)
def test_bad_query_is_refused_with_a_sentence(api: Api, query: str, message: str) -> None:
    reply = api.get(f"/runs?{query}")
    assert reply.status == 400
    assert message in reply.error["message"]


def test_unknown_parameter_offers_the_nearest(api: Api) -> None:
    assert api.get("/runs?stat=failed").error["fix"] == "did you mean 'state'?"


@pytest.mark.parametrize("path", ["", "/events", "/log", "/usage", "/outputs", "/outputs/x", "/wait?timeout=0"])
def test_unknown_run_is_not_found(api: Api, path: str) -> None:
    reply = api.get(f"/runs/987654{path}")
    assert (reply.status, reply.error["message"]) == (404, "there is no run 987654")


@pytest.mark.parametrize("wish", ["cancel", "retry"])
def test_wish_for_an_unknown_run_is_not_found(api: Api, wish: str) -> None:
    assert api.post(f"/runs/987654/{wish}").status == 404


def test_last_is_the_callers_own(api: Api, roles: dict[Role, Api]) -> None:
    mine = api.submit()
    theirs = roles[Role.MEMBER].submit()
    assert api.get("/runs/last").json["id"] == mine
    assert roles[Role.MEMBER].get("/runs/last").json["id"] == theirs
    assert roles[Role.VIEWER].get("/runs/last").status == 404


def test_events_are_paged_by_key(api: Api) -> None:
    run = api.submit()
    api.post(f"/runs/{run}/cancel")
    events = api.get(f"/runs/{run}/events").json
    assert len(events["events"]) >= 2 and events["next"] == events["events"][-1]["id"]
    rest = api.get(f"/runs/{run}/events?after={events['events'][0]['id']}&limit=1").json
    assert rest["events"] == events["events"][1:2]
    assert api.get(f"/runs/{run}/events?after={events['next']}").json == {"events": [], "next": events["next"]}


def test_cancel_and_retry(api: Api) -> None:
    run = api.submit()
    cancelled = api.post(f"/runs/{run}/cancel")
    assert (cancelled.status, cancelled.json["state"], cancelled.json["reason"]) == (202, "cancelled", "user")
    again = api.post(f"/runs/{run}/cancel")
    assert (again.status, again.error["code"]) == (409, "conflict")
    retried = api.post(f"/runs/{run}/retry")
    assert (retried.status, retried.json["state"]) == (202, "queued")


def test_wishes_for_many_name_each_refusal(api: Api) -> None:
    run = api.submit()
    reply = api.post("/runs/cancel", {"ids": [run, 987654]})
    assert reply.status == 202
    assert [one["id"] for one in reply.json["runs"]] == [run]
    assert reply.json["errors"]["987654"]["code"] == "not_found"
    back = api.post("/runs/retry", {"ids": [run]}).json
    assert back["runs"][0]["state"] == "queued" and back["errors"] == {}


def test_a_member_changes_only_their_own(api: Api, roles: dict[Role, Api]) -> None:
    mine = api.submit()
    reply = roles[Role.MEMBER].post(f"/runs/{mine}/cancel")
    assert (reply.status, reply.error["code"]) == (403, "forbidden")
    assert api.get(f"/runs/{mine}").json["state"] == "queued"
    theirs = roles[Role.MEMBER].submit()
    assert roles[Role.MEMBER].post(f"/runs/{theirs}/cancel").status == 202


def test_plan_stores_nothing(api: Api) -> None:
    before = newest(api)
    reply = api.post("/plan", {"command": ["echo", "{n}"], "params": {"n": 3}})
    assert (reply.status, reply.json["argv"]) == (200, ["echo", "3"])
    assert newest(api) == before


def test_wait_answers_when_the_time_is_over(api: Api) -> None:
    run = api.submit()
    assert api.get(f"/runs/{run}/wait?timeout=0.05").json["state"] == "queued"


def test_wait_answers_when_the_run_ends(api: Api, agent: Agent) -> None:
    claim = agent.start()
    ended = threading.Timer(0.3, agent.end, [claim, 3])
    ended.start()
    shown = api.get(f"/runs/{claim.key.run}/wait?timeout=600").json  # longer than anybody waits for the answer
    ended.join()
    assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "error", 3)


def test_waiting_leaves_nothing_behind(served: Served, api: Api) -> None:
    run = api.submit()
    with api.open("GET", f"/runs/{run}/wait?timeout=0") as response:
        response.read()
    listeners = served.yard.hints._listeners
    until(lambda: not [topic for topic in list(listeners) if topic.startswith("run:")], "nobody listens")
