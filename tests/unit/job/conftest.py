"""Programs that use runyard.job, as processes of their own: it keeps what it knows of its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard import runner


class Place:
    """A directory like that of an attempt, and programs in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.metrics, self.control = directory / "metrics.jsonl", directory / "control.json"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}
        self.inside = {
            "RUNYARD_METRICS": str(self.metrics), "RUNYARD_CONTROL": str(self.control), "RUNYARD_STOP_SIGNAL": "TERM",
            "RUNYARD_WARNING_SIGNAL": "USR1", "OUTPUT_DIR": str(directory / "out"),
            "CHECKPOINT_DIR": str(directory / "kept"),
        }  # fmt: skip

    def start(self, code: str, *options: str, **env: str) -> subprocess.Popen[str]:
        """Inside a run."""
        return subprocess.Popen(
            [sys.executable, *options, "-c", code], cwd=self.directory, env={**self.env, **self.inside, **env},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, code: str, *options: str, code_wanted: int = 0, **env: str) -> tuple[str, str]:
        """What it said, on both streams."""
        process = self.start(code, *options, **env)
        said, complained = process.communicate(timeout=120)
        assert process.returncode == code_wanted, complained
        return said, complained

    def outside(self, code: str) -> str:
        """Outside of any run."""
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.directory, env=self.env, capture_output=True, text=True, timeout=120,
            check=True,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]

    def logged(self) -> list[dict[str, float]]:
        return [line["m"] for line in self.lines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def packages(tmp_path: Path) -> str:
    """Where a run finds `runyard` when nobody has installed it."""
    return os.path.join(runner.install(str(tmp_path)), runner.PACKAGES)
