"""A control group around the user's processes, if one can be made: the kernel then enforces the memory limit.

Version 2 needs a group below which it may make others: the runner's own, or, as a group with processes of its own may
have none below it, the one above; that only while the runner's own group sets no limit which the user's process would
escape.
"""

import functools
import os
import re
import time
from typing import List, NamedTuple, Optional, Tuple

from . import json_files

_REMOVE_TRIES = 20


class CgroupLayout(NamedTuple):
    """How the versions differ."""

    settings: Tuple[Tuple[str, str], ...]  # file and value; `{limit}` is filled in. The first one must succeed
    peak: str
    events: str


V1 = CgroupLayout(
    settings=(("memory.limit_in_bytes", "{limit}"), ("memory.memsw.limit_in_bytes", "{limit}")),
    peak="memory.max_usage_in_bytes",
    events="memory.oom_control",
)
V2 = CgroupLayout(
    settings=(("memory.max", "{limit}"), ("memory.swap.max", "0"), ("memory.oom.group", "1")),
    peak="memory.peak",
    events="memory.events",
)


class Group:
    def __init__(self, path: str, layout: CgroupLayout) -> None:
        self.path = path
        self._layout = layout

    def limit_memory(self, limit: int) -> None:
        (first, value), *others = self._layout.settings
        self._write(first, value.format(limit=limit))
        for name, value in others:
            try:
                self._write(name, value.format(limit=limit))
            except OSError:  # such as a kernel that does not account swap
                pass

    def oom_kills(self) -> int:
        """How many processes the kernel has killed because of this limit."""
        for line in self._read(self._layout.events).splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
        return 0

    def peak(self) -> int:
        text = self._read(self._layout.peak)
        return int(text) if text else 0

    def processes(self) -> List[int]:
        return [int(word) for word in self._read("cgroup.procs").split()]

    def remove(self) -> None:
        """A group stays busy for a moment after its last process."""
        for _ in range(_REMOVE_TRIES):
            try:
                os.rmdir(self.path)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)

    def _read(self, name: str) -> str:
        try:
            return json_files.read_bytes(os.path.join(self.path, name)).decode()
        except OSError:
            return ""

    def _write(self, name: str, value: str) -> None:
        with open(os.path.join(self.path, name), "w") as file:
            file.write(value)


def make(name: str, limit: int) -> Optional[Group]:
    """A group with that memory limit, or None if this machine does not allow it."""
    for parent, layout in parents():
        group = Group(os.path.join(parent, name), layout)
        try:
            os.mkdir(group.path)
        except OSError:
            continue
        try:
            group.limit_memory(limit)
            return group
        except OSError:
            group.remove()
    return None


def safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


@functools.lru_cache(maxsize=None)
def parents() -> Tuple[Tuple[str, CgroupLayout], ...]:
    """Directories in which a group may be made. The same for a zygote and all its runners."""
    try:
        return tuple(find_parents(_text("/proc/self/cgroup"), _text("/proc/self/mountinfo")))
    except (OSError, ValueError):
        return ()


def find_parents(memberships: str, mounts: str) -> List[Tuple[str, CgroupLayout]]:
    for membership in memberships.splitlines():
        _, controllers, own = membership.split(":", 2)
        if "memory" in controllers.split(","):
            return [(path, V1) for path in _directories(mounts, "cgroup", own)]
    for membership in memberships.splitlines():
        if membership.startswith("0::"):
            return [(path, V2) for own in _directories(mounts, "cgroup2", membership[3:]) for path in _v2_parents(own)]
    return []


def _directories(mounts: str, kind: str, own: str) -> List[str]:
    """Where a group is to be seen; in a container its path starts at another root."""
    found = []
    for mount in mounts.splitlines():
        fields, _, file_system = mount.partition(" - ")
        root, point = fields.split()[3:5]
        name, _, options = file_system.split(" ", 2)
        if name == kind and (kind == "cgroup2" or "memory" in options.split(",")):
            below = own[len(root) :] if own.startswith(root) else own
            found.append(os.path.join(point, below.strip("/")).rstrip("/"))
    return [path for path in found if os.path.isdir(path)]


def _v2_parents(own: str) -> List[str]:
    above = os.path.dirname(own)
    found = [own, above] if _sets_no_limit(own) and os.path.exists(above + "/cgroup.procs") else [own]
    for directory in found:
        _enable_memory(directory)
    return found


def _enable_memory(directory: str) -> None:
    """For the groups that will be made in it."""
    path = directory + "/cgroup.subtree_control"
    try:
        if "memory" not in _text(path).split():
            with open(path, "w") as file:
                file.write("+memory")
    except OSError:  # it has processes of its own, or is not ours
        pass


def _sets_no_limit(directory: str) -> bool:
    limits = ("memory.max", "memory.high", "cpu.max", "pids.max")
    return all(_text_or(directory + "/" + name, "max").startswith("max") for name in limits)


def _text(path: str) -> str:
    return json_files.to_text(json_files.read_bytes(path))


def _text_or(path: str, default: str) -> str:
    try:
        return _text(path)
    except OSError:
        return default
