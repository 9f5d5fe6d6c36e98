"""What this machine has. As a host it does what every host promises: see test_contract.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.hosts import local


def test_a_file_may_be_written_to_disk_at_once(tmp_path: Path) -> None:
    local.write_file(f"{tmp_path}/x", b"1", durable=True)
    assert os.listdir(tmp_path) == ["x"]


def _program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ({}, None),
        ({"sinfo": "exit 0"}, "slurm"),
        ({"qhost": "exit 0"}, "gridengine"),
        ({"sinfo": "echo 'Unable to contact slurm controller' >&2; exit 1"}, None),
        ({"sinfo": "exit 1", "qhost": "exit 0"}, "gridengine"),
    ],
)
def test_a_scheduler_counts_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], found: str | None
) -> None:
    for name, script in programs.items():
        _program(tmp_path, name, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(local, "SCHEDULER_PATIENCE_S", 90.0)
    assert local.detect_scheduler() == found


def test_a_scheduler_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "sinfo", "exec sleep 600")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(local, "SCHEDULER_PATIENCE_S", 0.5)
    assert local.detect_scheduler() is None
