"""Tokens that files hold: the owner's, and those of agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.model.roles import Role
from runyard.settings import Settings
from runyard.yard import Yard


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Callable[..., Yard]]:
    made: list[Yard] = []

    def open_yard(**settings: Any) -> Yard:
        store = store_url if store_url.startswith("postgresql") else ""
        made.append(Yard.open(Settings(home=tmp_path, store=store, **settings)))
        return made[-1]

    yield open_yard
    for yard in made:
        yard.close()


def revoke(yard: Yard, name: str) -> None:
    [token] = [token["id"] for token in yard.access.tokens() if token["name"] == name]
    yard.access.revoke(token).result()
    yard.close()


def test_an_owner_whose_token_was_revoked_is_told_how_to_get_another(
    opened: Callable[..., Yard], tmp_path: Path
) -> None:
    yard = opened()
    revoke(yard, yard.owner().name)
    with pytest.raises(errors.ConfigError, match="was revoked"):
        opened()
    (tmp_path / "token").unlink()
    assert opened().authenticate((tmp_path / "token").read_text().strip()).role == Role.ADMIN


def test_a_token_of_agents_that_was_revoked_stays_so(opened: Callable[..., Yard], tmp_path: Path) -> None:
    path = tmp_path / "worker_token"
    path.write_text("0123456789abcdefghij")
    revoke(opened(agent_tokens={"workers": str(path)}), "file:workers")
    with pytest.raises(errors.ConfigError, match=r"agent_tokens\.workers: the token in the file was revoked"):
        opened(agent_tokens={"workers": str(path)})
    path.write_text("another-0123456789abcdefghij")
    assert opened(agent_tokens={"workers": str(path)}).authenticate(path.read_text()).site == "workers"
