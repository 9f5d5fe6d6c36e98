from __future__ import annotations

from pathlib import Path

import pytest

from runyard.bridges.scripts.job import Here


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """Ann submits from a directory of her own."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return Here(
        directory=str(tmp_path / "work"), home=str(tmp_path / "home"), user="ann", host="login1",
        environ={"PATH": "/opt/bin:/bin", "HOME": str(tmp_path / "home"), "DATA": "/data", "SHELL": "/bin/zsh"},
    )  # fmt: skip
