from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.runner.metrics.desk import Desk


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Inside an attempt's directory, which is the current one."""
    attempt = tmp_path / "runs" / "1" / "a1"
    (attempt / "outputs").mkdir(parents=True)
    monkeypatch.chdir(attempt)
    return attempt / "outputs"


@pytest.fixture
def desk(outputs: Path) -> Iterator[Desk]:
    desk = Desk(outputs)
    yield desk
    desk.sink.close()
