from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.agent import identity
from runyard.model.spec_values import NAME_PATTERN


def test_the_name_survives_restarts(tmp_path: Path) -> None:
    name = identity.durable_name(tmp_path / "site")
    assert NAME_PATTERN.fullmatch(name)
    assert identity.durable_name(tmp_path / "site") == name
    assert identity.durable_name(tmp_path / "other") != name


@pytest.mark.parametrize("text", ["", "{", '{"nam": 1}', "[]"])
def test_a_name_that_cannot_be_read_is_not_made_up_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "agent.json").write_text(text)
    with pytest.raises(errors.ConfigError, match=r"agent\.json"):
        identity.durable_name(tmp_path)
