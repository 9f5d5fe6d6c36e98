"""The document against the server: whatever the document allows is answered as the document says."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from runyard.server.check import check
from runyard.server.openapi import build_document
from runyard.server.routes import ROUTES
from runyard.server.schemas import ref
from tests.integration.server.api import PREFIX, Agent, Api, Served

schema = schemathesis.openapi.from_dict(build_document(ROUTES))

WAITS = {  # parameters by which a request says how long it may take
    "/runs/{id}/wait": ["timeout"],
    "/runs/{id}/outputs": ["timeout"],
    "/runs/{id}/checkpoints": ["timeout"],
    "/agents/news": ["wait"],
    "/agents/sync": ["wait"],
}


@pytest.fixture(scope="module")
def filled(served: Served) -> Served:
    """With runs that generated requests can find: one ended, one waiting."""
    agent = Agent(served.api, "local")
    agent.end(agent.start())
    served.api.submit()
    served.api.request("PUT", "/recipes/train?default=true", {"command": ["true"]})
    return served


def test_the_server_hands_out_this_document(api: Api) -> None:
    assert api.as_(None).get("/openapi.json").json == build_document(ROUTES)


def test_real_answers_have_exactly_the_documented_fields(served: Served, agent: Agent) -> None:
    claim = agent.start(params={"lr": 0.1}, tags=["x"], seed=3)
    digest = f"sha256:{hashlib.sha256(b'').hexdigest()}"
    agent.api.put(f"/blobs/{digest}", b"")
    agent.end(claim, outputs=[{"path": "empty", "size": 0, "digest": digest, "mode": 0o644}])
    path = f"/runs/{claim.key.run}"
    agent.start()
    get = served.api.get
    check(get(path).json, ref("FullRun"), "run")
    check(get("/runs").json["runs"][-1], ref("Run"), "run")
    check(get(f"{path}/events").json["events"][-1], ref("Event"), "event")
    check(get(f"{path}/outputs").json["outputs"][0], ref("Output"), "output")
    check(get("/sites").json["sites"][0], ref("Site"), "site")
    check(get(f"/sites/{agent.site}").json, ref("FullSite"), "site")
    check(get("/agents").json["agents"][0], ref("Agent"), "agent")
    check(get("/tokens").json["tokens"][0], ref("Token"), "token")
    check(served.api.post("/plan", {"command": ["true"]}).json, ref("Plan"), "plan")


@schema.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_documented(case: Any, filled: Served) -> None:
    """One check is left out: whether a site, a run or a digest exists is more than a schema can say."""
    _shorten(case)
    case.call_and_validate(
        base_url=filled.api.url,
        headers={"Authorization": f"Bearer {filled.api.token}"},
        timeout=90,
        excluded_checks=[positive_data_acceptance],
    )


def _shorten(case: Any) -> None:
    """Waits are cut short, and the test's own token is not revoked. What is not a number stays: it must be refused."""
    query = dict(case.query or {})
    path = case.operation.path.removeprefix(PREFIX)
    for name in WAITS.get(path, []):
        with contextlib.suppress(TypeError, ValueError):
            query[name] = min(0.01, float(query.get(name, 1)))
    if str(query.get("follow")).lower() in ("1", "true"):
        query["follow"] = "false"
    case.query = query
    if path == "/tokens/{id}" and str(case.path_parameters.get("id")) == "1":
        case.path_parameters["id"] = 2
