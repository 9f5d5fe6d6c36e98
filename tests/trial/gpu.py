"""The tests that need a GPU, where there is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.trial.report import Row, tried

TESTS = Path(__file__).parents[1] / "acceptance" / "test_gpus.py"


def run() -> Iterator[Row]:
    row = Row(name="gpu", configuration=TESTS.name)

    def test() -> None:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(TESTS)], cwd=TESTS.parents[2], check=False)
        if done.returncode:
            row.violations.append(f"pytest ended with {done.returncode}")

    yield tried(row, ["nvidia gpu"], test)
