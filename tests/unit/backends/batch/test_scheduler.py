"""What the scheduler's programs see of the agent's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.backends.batch.options import parse
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.slurm import Slurm
from runyard.hosts.local import LocalHost

GIVEN = {
    "HOME": "/home/me", "PATH": os.environ["PATH"], "TZ": "UTC",
    "SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "def-lab",
    "API_KEY": "secret", "NOTE": "two lines\nTOKEN=secret", "SQUEUE_NAMES": "other", "runyard.odd": "secret",
}  # fmt: skip


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "sbatch"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    settings, dialect = parse({"bin": str(tmp_path)}, Slurm)
    return Scheduler(dialect, LocalHost(), settings)


def seen(scheduler: Scheduler, sees: str) -> dict[str, str]:
    lines = scheduler.run(["sbatch"], sees=sees).stdout.decode().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_a_submit_sees_only_what_jobs_may_have(scheduler: Scheduler) -> None:
    """Slurm's jobs get all that sbatch sees."""
    found = seen(scheduler, scheduler.dialect.submit_sees)
    kept = {name: value for name, value in GIVEN.items() if name.startswith(("HOME", "PATH", "TZ", "SLURM", "SBATCH"))}
    assert {name: found.get(name) for name in kept} == kept
    assert "secret" not in found.values()
    assert not {"API_KEY", "NOTE", "TOKEN", "SQUEUE_NAMES"} & set(found)


def test_other_commands_see_the_rest_too(scheduler: Scheduler) -> None:
    found = seen(scheduler, "*")
    assert (found["API_KEY"], found["LC_ALL"]) == ("secret", "C")
    assert "SQUEUE_NAMES" not in found  # it would hide jobs
