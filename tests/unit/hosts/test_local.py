"""This machine as a host."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from runyard.hosts import local
from runyard.hosts.local import LocalHost


def test_a_command_is_run_with_its_input() -> None:
    result = LocalHost().run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout=10, input=b"given")
    assert (result.code, result.stdout, result.stderr, result.ok) == (3, b"given", b"oops\n", False)


def test_a_missing_program_is_an_answer() -> None:
    result = LocalHost().run(["no-such-program"], timeout=10)
    assert result.code == 127
    assert b"no-such-program" in result.stderr


def test_a_command_that_does_not_answer_is_killed_with_what_it_started(tmp_path: Path) -> None:
    begun = time.monotonic()
    # The sleep keeps the pipe open after the shell is gone.
    result = LocalHost().run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], timeout=0.3)
    assert result.code is None
    assert time.monotonic() - begun < 60
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_put_builds_private_directories_and_replaces_files(tmp_path: Path) -> None:
    host, root = LocalHost(), tmp_path / "deep" / "root"
    host.put(str(root), {"a/x.json": b"1", "y": b"2"}, ["a", "b/c"])
    host.put(str(root), {"a/x.json": b"new"})
    assert host.fetch(str(root / "a" / "x.json")) == b"new"
    modes = [stat.S_IMODE(os.stat(root / name).st_mode) for name in ("a", "b/c", "a/x.json")]
    assert modes == [0o700, 0o700, 0o600]
    assert sorted(os.listdir(root / "a")) == ["x.json"]


def test_put_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    host = LocalHost()
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError):
        host.put(str(tmp_path), {"x": b"a file cannot replace a directory"})
    assert os.listdir(tmp_path) == ["x"]


def test_fetch_of_nothing_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalHost().fetch(str(tmp_path / "none"))


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
