"""What an agent may do for people who have no token, and what not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Agent, Api, Served

KEY = "k" * 32
PLACE = "/agents/drop-boxes"


@pytest.fixture
def boxes(serve_yard: Callable[..., Served]) -> Served:
    served = serve_yard(spool_sites=["boxes"])
    for site in ("boxes", "others"):
        served.yard.sites.ensure(site, "local", explicit=True).result()
    return served


@pytest.fixture
def agent(boxes: Served) -> Api:
    return boxes.api.new_token("node", Role.AGENT, "boxes")


def body(**run: Any) -> dict[str, Any]:
    return {"owner": "ada", "key": KEY, "run": {"command": ["true"], **run}}


def hand_in(api: Api, site: str = "boxes", **run: Any) -> Any:
    return api.post(f"{PLACE}/runs?site={site}", body(**run))


def test_a_run_of_the_person_at_the_agents_site(boxes: Served, agent: Api) -> None:
    first, again = hand_in(agent), hand_in(agent)
    assert (first.status, again.status) == (201, 200)
    run = first.json["id"]
    assert again.json == {"id": run, "created": False}
    shown = boxes.api.get(f"/runs/{run}").json
    assert (shown["owner"], shown["site"]) == ("ada", "boxes")
    assert hand_in(agent, params={"lr": 1}).status == 409
    assert hand_in(agent, site="others").status == 403
    assert agent.post(f"{PLACE}/runs?site=boxes", {**body(site="others"), "key": "x" * 32}).status == 400


def test_it_is_seen_followed_and_cancelled(boxes: Served, agent: Api) -> None:
    run = hand_in(agent).json["id"]
    site = Agent(boxes.api, "boxes")
    (claim,) = site.sync().claims
    site.write(claim, b"0123456789")
    assert agent.get(f"{PLACE}/runs/{run}/log?site=boxes&offset=4").body == b"456789"
    assert agent.get(f"{PLACE}/runs/{run}/outputs?site=boxes").json == {"outputs": []}
    (seen,) = agent.post(f"{PLACE}/look?site=boxes", {"ids": [run, 999]}).json["runs"]
    assert (seen["id"], seen["attempt"]) == (run, 1)
    assert agent.post(f"{PLACE}/runs/{run}/cancel?site=boxes").status == 202
    assert boxes.api.get(f"/runs/{run}").json["cancel_requested"]


def test_runs_of_others_are_nobodys_business(boxes: Served, agent: Api) -> None:
    run = boxes.api.submit(site="boxes")
    assert agent.post(f"{PLACE}/look?site=boxes", {"ids": [run]}).json == {"runs": []}
    for method, path in {"log": "GET", "outputs": "GET", "cancel": "POST"}.items():
        assert agent.request(path, f"{PLACE}/runs/{run}/{method}?site=boxes").status == 404
    assert not boxes.api.get(f"/runs/{run}").json["cancel_requested"]


def test_only_where_the_admin_allows_it(boxes: Served) -> None:
    stranger = boxes.api.new_token("other", Role.AGENT, "others")
    refused = hand_in(stranger, site="others")
    assert refused.status == 403
    assert 'spool_sites = ["others"]' in refused.error["fix"]
    for role in (Role.MEMBER, Role.VIEWER):
        assert hand_in(boxes.api.new_token(f"the-{role}", role)).status == 403


def test_a_token_for_some_people_only(boxes: Served) -> None:
    made = boxes.api.post(
        "/tokens", {"name": "few", "role": "agent", "site": "boxes", "limits": {"projects": [], "users": ["bob"]}}
    )
    assert made.status == 201, made.body
    refused = hand_in(boxes.api.as_(made.json["secret"]))
    assert (refused.status, refused.error["message"]) == (400, "this drop box is for user bob")


@pytest.mark.parametrize(
    "given",
    [{}, {"owner": "../x", "key": KEY, "run": {"command": "true"}}, {**body(), "key": "short"}, body(owner="x")],
)
def test_bodies_that_are_refused(agent: Api, given: dict[str, Any]) -> None:
    assert agent.post(f"{PLACE}/runs?site=boxes", given).status == 400
