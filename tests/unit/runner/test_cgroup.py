"""Where a control group may be made: what the kernel's files say, for both versions and in containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.runner import cgroup

V1_MEMBERSHIPS = "9:name=systemd:/\n5:cpu,cpuacct:/x\n4:memory:{own}\n0::/other\n"
V2_MEMBERSHIPS = "0::{own}\n"


def mount(kind: str, root: str, point: Path, options: str) -> str:
    return f"30 23 0:26 {root} {point} rw,nosuid shared:4 - {kind} {kind} {options}\n"


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    """A tree that looks like one of version 2: /slice/service, in which we are."""
    service = tmp_path / "slice" / "service"
    service.mkdir(parents=True)
    for directory in (tmp_path, tmp_path / "slice", service):
        for name in ("cgroup.procs", "cgroup.subtree_control"):
            (directory / name).write_text("")
    for name in ("memory.max", "memory.high", "cpu.max", "pids.max"):
        (service / name).write_text("max\n")
    return tmp_path


def test_version_1_is_found_by_its_controller(tmp_path: Path) -> None:
    (tmp_path / "memory/job").mkdir(parents=True)
    mounts = mount("cgroup", "/", tmp_path / "cpu", "rw,cpu") + mount("cgroup", "/", tmp_path / "memory", "rw,memory")
    found = cgroup.find_parents(V1_MEMBERSHIPS.format(own="/job"), mounts)
    assert found == [(str(tmp_path / "memory/job"), cgroup.V1)]


def test_in_a_container_the_path_starts_elsewhere(tmp_path: Path) -> None:
    mounts = mount("cgroup", "/docker/abc", tmp_path, "rw,memory")
    found = cgroup.find_parents(V1_MEMBERSHIPS.format(own="/docker/abc"), mounts)
    assert found == [(str(tmp_path), cgroup.V1)]


def test_version_2_may_go_one_up(hierarchy: Path) -> None:
    mounts = mount("cgroup2", "/", hierarchy, "rw")
    found = cgroup.find_parents(V2_MEMBERSHIPS.format(own="/slice/service"), mounts)
    assert found == [(str(hierarchy / "slice/service"), cgroup.V2), (str(hierarchy / "slice"), cgroup.V2)]
    assert (hierarchy / "slice/cgroup.subtree_control").read_text() == "+memory"


def test_nobody_escapes_a_limit(hierarchy: Path) -> None:
    (hierarchy / "slice/service/cpu.max").write_text("200000 100000\n")
    mounts = mount("cgroup2", "/", hierarchy, "rw")
    found = cgroup.find_parents(V2_MEMBERSHIPS.format(own="/slice/service"), mounts)
    assert found == [(str(hierarchy / "slice/service"), cgroup.V2)]


def test_without_control_groups_there_is_none(tmp_path: Path) -> None:
    assert cgroup.find_parents("", "") == []
    assert cgroup.find_parents(V2_MEMBERSHIPS.format(own="/"), mount("tmpfs", "/", tmp_path, "rw")) == []


@pytest.mark.parametrize(
    ("layout", "events", "kills"),
    [
        (cgroup.V1, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2),
        (cgroup.V2, "low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 1\n", 3),
        (cgroup.V1, "oom_kill_disable 0\nunder_oom 0\n", 0),
    ],
)
def test_a_group_tells_what_happened(tmp_path: Path, layout: cgroup.CgroupLayout, events: str, kills: int) -> None:
    group = cgroup.Group(str(tmp_path), layout)
    assert (group.oom_kills(), group.peak(), group.processes()) == (0, 0, [])
    (tmp_path / layout.events).write_text(events)
    (tmp_path / layout.peak).write_text("104857600\n")
    (tmp_path / "cgroup.procs").write_text("12\n13\n")
    assert (group.oom_kills(), group.peak(), group.processes()) == (kills, 104857600, [12, 13])


def test_version_2_kills_as_a_group_and_does_not_swap(tmp_path: Path) -> None:
    cgroup.Group(str(tmp_path), cgroup.V2).limit_memory(1 << 30)
    settings = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert settings == {"memory.max": str(1 << 30), "memory.swap.max": "0", "memory.oom.group": "1"}


def test_a_name_is_made_safe() -> None:
    assert cgroup.safe_name("runyard-42.1/../x y") == "runyard-42.1_.._x_y"


@pytest.mark.component("cgroup memory")
def test_a_real_group_is_made_and_removed() -> None:
    group = cgroup.make("runyard-unit-test", 64 << 20)
    assert group is not None
    assert Path(group.path).is_dir()
    assert (group.oom_kills(), group.processes()) == (0, [])
    group.remove()
    assert not Path(group.path).exists()
