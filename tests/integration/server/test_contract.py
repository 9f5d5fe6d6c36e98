"""The document against the server: whatever the document allows is answered as the document says."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from runyard.server.openapi import build_document
from runyard.server.routes import ROUTES
from tests.integration.server.api import PREFIX, Agent, Api, Served
from tests.integration.server.shapes import check_answer

DOCUMENT = build_document(ROUTES)
# By name only: schemathesis takes longer to understand the document than most of these tests take.
OPERATIONS = [f"{method} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]

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
    assert api.as_(None).get("/openapi.json").json == DOCUMENT


def test_real_answers_have_exactly_the_documented_fields(served: Served, agent: Agent) -> None:
    claim = agent.start(params={"lr": 0.1}, tags=["x"], seed=3)
    digest = f"sha256:{hashlib.sha256(b'').hexdigest()}"
    agent.api.put(f"/blobs/{digest}", b"")
    agent.end(claim, outputs=[{"path": "empty", "size": 0, "digest": digest, "mode": 0o644}])
    path = f"/runs/{claim.key.run}"
    agent.start()
    get = served.api.get
    check_answer(get(path).json, "FullRun")
    check_answer(get("/runs").json["runs"][-1], "Run")
    check_answer(get(f"{path}/events").json["events"][-1], "Event")
    check_answer(get(f"{path}/outputs").json["outputs"][0], "Output")
    check_answer(get("/sites").json["sites"][0], "Site")
    check_answer(get(f"/sites/{agent.site}").json, "FullSite")
    check_answer(get("/agents").json["agents"][0], "Agent")
    check_answer(get("/tokens").json["tokens"][0], "Token")
    check_answer(served.api.post("/plan", {"command": ["true"]}).json, "Plan")


@pytest.mark.hypothesis
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("mode", GenerationMode)
def test_answers_are_as_documented(operation: str, mode: GenerationMode, filled: Served) -> None:
    """Requests that the document allows, and those that it does not. Two checks are left out: whether a site, a run or
    a digest exists is more than a schema can say, and an empty parameter counts as one that is not there."""
    found = _found(operation)
    if mode is GenerationMode.NEGATIVE and not (found.body or list(found.iter_parameters())):
        return  # nothing can be wrong about a request without anything in it

    @settings(
        max_examples=max(4, settings.default.max_examples // 40),
        derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=found.as_strategy(generation_mode=mode))
    def answers(case: Any) -> None:
        _shorten(case)
        case.call_and_validate(
            base_url=filled.api.url,
            headers={"Authorization": f"Bearer {filled.api.token}"},
            timeout=90,
            excluded_checks=[positive_data_acceptance, negative_data_rejection],
        )

    answers()


@functools.cache
def _schema() -> Any:
    return schemathesis.openapi.from_dict(DOCUMENT)


def _found(operation: str) -> Any:
    method, path = operation.split()
    return _schema()[path][method]


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
