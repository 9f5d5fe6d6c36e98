from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.model.roles import Role
from tests.integration.server.api import Agent, Api, Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the tests of a module."""
    found = Served(tmp_path_factory.mktemp("home"), body_limit=1 << 20)
    yield found
    found.end()


@pytest.fixture
def serve_yard(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """A server for this test alone, with the settings and background parts that it names."""
    made: list[Served] = []

    def make(*background: Any, **settings: Any) -> Served:
        made.append(Served(tmp_path / f"home{len(made)}", *background, **settings))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def api(served: Served) -> Api:
    return served.api


@pytest.fixture(scope="module")
def roles(served: Served) -> dict[Role, Api]:
    api = served.api
    return {
        Role.ADMIN: api,
        Role.MEMBER: api.new_token("ada", Role.MEMBER),
        Role.VIEWER: api.new_token("vic", Role.VIEWER),
        Role.AGENT: api.new_token("node", Role.AGENT, "local"),
        Role.CALLER: api.new_token("web", Role.CALLER),
    }


@pytest.fixture
def agent(served: Served) -> Agent:
    """The only agent of a site that no other test uses, and that only takes runs which name it."""
    site = f"site-{next(_numbers)}"
    served.yard.sites.ensure(site, "local", explicit=True).result()
    return Agent(served.api, site)


_numbers = itertools.count(1)
