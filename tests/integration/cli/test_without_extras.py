"""What a newcomer has not installed is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = ("pika", "psycopg")


@pytest.mark.parametrize("missing", EXTRAS)
def test_a_yard_as_it_comes_needs_no_extra(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ImportError('no module named {missing}')\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "RUNYARD_HOME": str(tmp_path / "home"), "RUNYARD_PORT": "0"}

    def runyard(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runyard", *words]
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = runyard("submit", "--wait", "--", "true")
    runyard("down")
    assert done.returncode == 0, done.stderr
