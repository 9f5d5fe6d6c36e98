"""What a machine lets us use, by its control groups."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.runner import capacity


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_cpus_follow_a_quota_of_cgroup_2(tmp_path: Path) -> None:
    cgroup = {"proc/self/cgroup": "0::/job/step\n", "sys/fs/cgroup/job/step/cpu.max": "max 100000\n"}
    assert capacity.usable_cpus(str(_tree(tmp_path / "free", cgroup))) == len(os.sched_getaffinity(0))
    limited = _tree(tmp_path / "limited", {**cgroup, "sys/fs/cgroup/job/cpu.max": "100000 100000\n"})
    assert capacity.usable_cpus(str(limited)) == 1
    tiny = _tree(tmp_path / "tiny", {**cgroup, "sys/fs/cgroup/job/cpu.max": "20000 100000\n"})
    assert capacity.usable_cpus(str(tiny)) == 1


def test_cpus_follow_a_quota_of_cgroup_1(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/x\n2:cpu,cpuacct:/x\n",
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "100000",
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
    }
    assert capacity.usable_cpus(str(_tree(tmp_path, files))) == 1


def test_memory_is_the_smallest_limit_above_us(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/job/step\n",
        "sys/fs/cgroup/job/step/memory.max": "max\n",
        "sys/fs/cgroup/job/memory.max": "1073741824\n",
    }
    assert capacity.usable_memory(str(_tree(tmp_path, files))) == 1 << 30


def test_memory_without_limits_is_the_machines(tmp_path: Path) -> None:
    assert capacity.usable_memory(str(tmp_path)) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
