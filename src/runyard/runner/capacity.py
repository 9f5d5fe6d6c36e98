"""The resources of this machine that we may use: cpus, memory, GPUs."""

import os
from typing import Any, Dict, Iterator, List, Optional

from . import nvml


def gpus() -> List[Dict[str, Any]]:
    """`[{"uuid", "type", "memory"}]`, memory in bytes, 0 if unknown."""
    return [{"uuid": gpu["uuid"], "type": gpu["name"], "memory": gpu["memory"] or 0} for gpu in nvml.gpus()]


def usable_cpus(root: str = "/") -> int:
    """What the affinity mask and the cgroup's quota leave us, at least one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [_cpu_quota(directory) for directory in _cgroups(root, "cpu")]
    return max(1, min([count, *(int(quota) for quota in quotas if quota is not None)]))


def usable_memory(root: str = "/") -> int:
    """Bytes: the machine's, or the smallest limit of the cgroups we are in."""
    limits = [_memory_limit(directory) for directory in _cgroups(root, "memory")]
    return min([_machine_memory(), *(limit for limit in limits if limit is not None)])


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroups(root: str, controller: str) -> Iterator[str]:
    """The directories of our cgroup and of its parents, where a limit of this kind may be written."""
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, inside = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        mount = os.path.normpath(os.path.join(root, "sys/fs/cgroup", "" if number == "0" else controllers))
        place = os.path.normpath(mount + "/" + inside)
        while place == mount or place.startswith(mount + "/"):
            yield place
            place = os.path.dirname(place)


def _cpu_quota(cgroup: str) -> Optional[float]:
    words = (_text(cgroup + "/cpu.max") or _text(cgroup + "/cpu.cfs_quota_us")).split()
    if not words or words[0] in ("max", "-1"):
        return None
    period = words[1] if len(words) > 1 else _text(cgroup + "/cpu.cfs_period_us") or "100000"
    return int(words[0]) / int(period)


def _memory_limit(cgroup: str) -> Optional[int]:
    text = _text(cgroup + "/memory.max") or _text(cgroup + "/memory.limit_in_bytes")
    return int(text) if text.isdigit() else None


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
