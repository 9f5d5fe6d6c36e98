"""Whether this machine lets us make a memory cgroup: tried, not guessed."""

from __future__ import annotations

import os
from pathlib import Path

_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")


def memory_version() -> str:
    """`v1` or `v2`; raises OSError when no group with a memory limit can be made."""
    version, root, limit = ("v1", _V1, "memory.limit_in_bytes") if _V1.is_dir() else ("v2", _V2, "memory.max")
    trial = root / _own(version) / f"runyard-trial-{os.getpid()}"
    trial.mkdir()
    try:
        (trial / limit).write_text(str(1 << 30))
    finally:
        trial.rmdir()
    return version


def _own(version: str) -> str:
    """The group of this process, relative to the root of the hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if (version == "v2" and not controllers) or (version == "v1" and "memory" in controllers.split(",")):
            return path.lstrip("/")
    raise FileNotFoundError(f"/proc/self/cgroup names no {version} memory group")
