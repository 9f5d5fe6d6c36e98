"""The document against the server: whatever the document allows is answered as the document says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from runyard.server.openapi import build_document
from runyard.server.routes import ROUTES
from tests.integration.server.api import PREFIX, Agent, Api, Served


schema = schemathesis.openapi.from_dict(build_document(ROUTES))


@pytest.fixture(scope="module")
def filled(served: Served) -> Served:
    """With runs that generated requests can find: one ended, one waiting."""
    agent = Agent(served.api, "local")
    agent.end(agent.start())
    served.api.submit()
    return served


def test_the_server_hands_out_this_document(api: Api) -> None:
    assert api.as_(None).get("/openapi.json").json == build_document(ROUTES)


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
    _shorten(case)
    case.call_and_validate(
        base_url=f"{filled.api.url}{PREFIX}", headers={"Authorization": f"Bearer {filled.api.token}"}, timeout=20
    )


def _shorten(case: Any) -> None:
    """Waits are cut short, and the test's own token is not revoked."""
    query = case.query or {}
    for name in ("wait", "timeout"):
        if isinstance(query.get(name), (int, float)) and query[name] > 0.01:
            query[name] = 0.01
    if case.operation.path == "/runs/{id}/wait":
        case.query = {"timeout": 0.01, **query}
    elif case.operation.path == "/agents/news":
        case.query = {"wait": 0.01, **query}
    elif "follow" in query:
        query["follow"] = False
    elif case.operation.path == "/tokens/{id}" and case.path_parameters.get("id") == 1:
        case.path_parameters["id"] = 2
