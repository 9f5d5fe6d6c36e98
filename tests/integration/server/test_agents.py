from __future__ import annotations

import threading
import time

import pytest

from runyard.model.roles import Role
from runyard.server.routes.agents import LONGEST_WAIT
from tests.integration.server.api import CAPACITY, NOTHING, Agent, Api, Served
from tests.labs.waiting import until


def test_hello_gives_back_what_the_agent_had(api: Api, agent: Agent) -> None:
    claim = agent.start()
    reborn = Agent(api, agent.site)
    assert reborn.incarnation == agent.incarnation + 1
    hello = api.post("/agents/hello", hello_body(agent)).json
    assert [one["key"] for one in hello["claims"]] == [str(claim.key)]
    assert hello["claims"][0]["state"] == "running"


def test_an_older_incarnation_is_refused(api: Api, agent: Agent) -> None:
    claim = agent.start()
    Agent(api, agent.site)
    reply = api.post("/agents/sync", agent.request().to_json())
    assert (reply.status, reply.error["code"]) == (409, "stale")
    late = agent.write(claim, b"late")
    assert (late.status, late.error["code"]) == (409, "stale")


def test_bytes_are_held_by_offset(agent: Agent) -> None:
    claim = agent.start()
    assert agent.write(claim, b"0123456789").json == {"size": 10}
    assert agent.write(claim, b"0123456789").json == {"size": 10}
    assert agent.write(claim, b"56789abc", offset=5).json == {"size": 13}
    assert agent.write(claim, b"beyond", offset=99).json == {"size": 13}
    assert agent.api.get(f"/runs/{claim.key.run}/log").body == b"0123456789abc"


def test_files_that_are_not_relayed(agent: Agent) -> None:
    claim = agent.start()
    assert agent.write(claim, b"x", file="spec.json").status == 400
    assert agent.write(claim, b"x", file="..%2F..%2Ftoken").status in (400, 404)


def test_an_agent_token_serves_its_own_site_only(api: Api, roles: dict[Role, Api], agent: Agent) -> None:
    stranger = roles[Role.AGENT]
    assert stranger.post("/agents/hello", hello_body(agent)).status == 403
    assert stranger.post("/agents/sync", agent.request().to_json()).status == 403
    assert stranger.get(f"/agents/news?site={agent.site}&wait=0").status == 403
    own = api.new_token("own", Role.AGENT, agent.site)
    assert own.post("/agents/hello", hello_body(agent)).status == 200


def test_sync_waits_for_work(api: Api, agent: Agent) -> None:
    runs: list[int] = []
    later = threading.Timer(0.3, lambda: runs.append(api.submit(site=agent.site)))
    later.start()
    began = time.monotonic()
    answer = agent.sync(wait=LONGEST_WAIT)
    later.join()
    assert [claim.key.run for claim in answer.claims] == runs
    assert time.monotonic() - began < LONGEST_WAIT, "it was woken"


def test_sync_waits_for_stops(api: Api, agent: Agent) -> None:
    claim = agent.start()
    later = threading.Timer(0.3, api.post, [f"/runs/{claim.key.run}/cancel"])
    later.start()
    answer = agent.sync(free=NOTHING, wait=LONGEST_WAIT)
    later.join()
    assert [(stop.key, stop.reason) for stop in answer.stops] == [(claim.key, "user")]


def test_news_waits_for_a_hint(served: Served, api: Api, agent: Agent) -> None:
    quiet = api.get(f"/agents/news?site={agent.site}&wait=0.05").json
    assert quiet["news"] is False
    listeners = served.yard.hints._listeners[f"site:{agent.site}"]
    before = len(listeners)

    def submit() -> None:
        until(lambda: len(listeners) > before, "somebody who waits: nobody else is told of it")
        api.submit(site=agent.site)

    later = threading.Thread(target=submit)
    later.start()
    assert api.get(f"/agents/news?site={agent.site}&wait={LONGEST_WAIT}").json["news"] is True
    later.join()


def test_news_between_two_questions_is_not_lost(api: Api, agent: Agent) -> None:
    seen = api.get(f"/agents/news?site={agent.site}&wait=0").json["number"]
    api.submit(site=agent.site)
    told = api.get(f"/agents/news?site={agent.site}&wait={LONGEST_WAIT}&seen={seen}").json
    assert told["news"] is True and told["number"] > seen
    quiet = api.get(f"/agents/news?site={agent.site}&wait=0.05&seen={told['number']}").json
    assert quiet == {"news": False, "number": told["number"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"free": {"cpus": "many", "memory": 1}}, "sync.free.cpus: 'many' is not a whole number"),
        ({"free": {"cpus": 1}}, "sync.free: memory is missing"),
        ({"reports": [{"key": "x", "state": "running"}]}, "sync.reports[0].key"),
        ({"reports": [{"key": "1.1", "state": "flying"}]}, "sync.reports[0].state: 'flying' is not known"),
        ({"reports": {}}, "sync.reports: must be a list"),
        ({"incarnation": True}, "sync.incarnation: True is not a whole number"),
        ({"colour": 1}, "sync: unknown field 'colour'"),
    ],
)
def test_what_an_agent_says_is_checked(api: Api, agent: Agent, change: dict[str, object], message: str) -> None:
    reply = api.post("/agents/sync", {**agent.request().to_json(), **change})
    assert reply.status == 400
    assert message in reply.error["message"]


def test_sites_and_agents_are_shown(api: Api, agent: Agent) -> None:
    claim = agent.start()
    site = api.get(f"/sites/{agent.site}").json
    assert [run["id"] for run in site["runs"]] == [claim.key.run] and site["active_runs"] == 1
    assert [(one["name"], one["state"]) for one in site["agents"]] == [("a1", "alive")]
    assert site["agents"][0]["total"] == CAPACITY.to_json()
    assert agent.site in [one["name"] for one in api.get("/sites").json["sites"]]
    assert agent.site in [one["site"] for one in api.get("/agents").json["agents"]]
    assert api.get("/sites/nowhere").status == 404


def test_drain_and_resume(api: Api, agent: Agent) -> None:
    assert api.post(f"/sites/{agent.site}/drain").json["drained"] is True
    run = api.submit(site=agent.site)
    assert agent.sync().claims == []
    assert api.post(f"/sites/{agent.site}/resume").json["drained"] is False
    assert [claim.key.run for claim in agent.sync().claims] == [run]
    assert api.post("/sites/nowhere/drain").status == 404


def hello_body(agent: Agent) -> dict[str, object]:
    return {
        "site": agent.site, "agent": agent.name, "node": "node1", "boot_id": "boot", "version": "0",
        "total": CAPACITY.to_json(),
    }  # fmt: skip
