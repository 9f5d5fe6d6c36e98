"""What this machine has. As a host it does what every host promises: see test_contract.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.hosts import local


def test_a_file_may_be_written_to_disk_at_once(tmp_path: Path) -> None:
    local.write_file(f"{tmp_path}/x", b"1", durable=True)
    assert os.listdir(tmp_path) == ["x"]


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_cpus_follow_a_quota_of_cgroup_2(tmp_path: Path) -> None:
    cgroup = {"proc/self/cgroup": "0::/job/step\n", "sys/fs/cgroup/job/step/cpu.max": "max 100000\n"}
    assert local.usable_cpus(_tree(tmp_path / "free", cgroup)) == len(os.sched_getaffinity(0))
    limited = _tree(tmp_path / "limited", {**cgroup, "sys/fs/cgroup/job/cpu.max": "100000 100000\n"})
    assert local.usable_cpus(limited) == 1
    tiny = _tree(tmp_path / "tiny", {**cgroup, "sys/fs/cgroup/job/cpu.max": "20000 100000\n"})
    assert local.usable_cpus(tiny) == 1


def test_cpus_follow_a_quota_of_cgroup_1(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/x\n2:cpu,cpuacct:/x\n",
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "100000",
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
    }
    assert local.usable_cpus(_tree(tmp_path, files)) == 1


def test_memory_is_the_smallest_limit_above_us(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/job/step\n",
        "sys/fs/cgroup/job/step/memory.max": "max\n",
        "sys/fs/cgroup/job/memory.max": "1073741824\n",
    }
    assert local.usable_memory(_tree(tmp_path, files)) == 1 << 30


def test_memory_without_limits_is_the_machines(tmp_path: Path) -> None:
    assert local.usable_memory(tmp_path) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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
        ({"sinfo": "exec sleep 600"}, None),
    ],
)
def test_a_scheduler_counts_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], found: str | None
) -> None:
    for name, script in programs.items():
        _program(tmp_path, name, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(local, "SCHEDULER_PATIENCE_S", 0.5)
    assert local.detect_scheduler() == found
