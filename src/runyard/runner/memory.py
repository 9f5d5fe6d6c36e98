"""How much memory a tree of processes uses, and when it is too much.

RSS counts a page once for every process that has it; PSS shares it out. RSS is one number in a file, PSS a walk through
the page tables: so RSS is read often, and PSS only if the decision depends on it.
"""

import os
import re
import time
from typing import List, Optional, Union

from . import cgroup, json_files, spec, tree

_PSS_LINE = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)
_GROWTH = 1.05  # a new peak is measured when RSS has grown by this much
_TRIGGER = 0.9  # RSS is read without a lock and may be a little behind
_FASTEST = 4 << 30  # bytes a second: no program was seen to touch new memory faster
_CLOSEST_S, _WIDEST_S = 0.02, 0.5
_UNITS = ("B", "KB", "MB", "GB", "TB")
_SHARE = 20  # measuring takes at most one part in 20 of the time


class Meter:
    """The highest use seen."""

    def __init__(self) -> None:
        self.peak = 0
        self._highest_rss = 0

    def see(self, processes: List[tree.Process]) -> None:
        rss = sum(process.rss for process in processes)
        if rss > self._highest_rss * _GROWTH or len(processes) == 1:
            self._highest_rss = max(rss, self._highest_rss)
            self.peak = max(self.peak, rss if len(processes) == 1 else total_pss(processes))


class MeasuredLimit:
    """Decides by measuring: RSS as the trigger, PSS for the decision. Measures more often the less memory is left."""

    name = "pss"
    cgroup: Optional[str] = None

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.delay = _CLOSEST_S
        self.peak = 0

    def verdict(self, processes: List[tree.Process]) -> Optional[str]:
        """What was exceeded, or None."""
        begun = time.monotonic()
        used = sum(process.rss for process in processes)
        if used > self._limit * _TRIGGER:
            used = total_pss(processes)
            self.peak = max(self.peak, used)
        cost = time.monotonic() - begun
        room = max(self._limit - used, 0) / _FASTEST
        self.delay = max(min(max(room, _CLOSEST_S), _WIDEST_S), cost * _SHARE)
        return self._message(used, processes) if used > self._limit else None

    def last_word(self) -> Optional[str]:
        return None  # what has ended can no longer be measured

    def or_substitute(self) -> "Judge":
        return self

    def close(self) -> None:
        pass

    def _message(self, used: int, processes: List[tree.Process]) -> str:
        largest = max(processes, key=lambda process: process.rss)
        return "used %s of the %s granted (measured; %d processes, the largest is %s with %s)" % (
            shown(used), shown(self._limit), len(processes), largest.name, shown(largest.rss),
        )  # fmt: skip


class CgroupLimit:
    """The kernel keeps the limit; this only reads whether it had to kill."""

    name = "cgroup"
    delay = _WIDEST_S

    def __init__(self, group: cgroup.Group, limit: int) -> None:
        self._group = group
        self._limit = limit
        self.cgroup: Optional[str] = group.path

    @property
    def peak(self) -> int:
        """The group's own peak counts cached files too, and tells something only once the limit was hit."""
        return self._group.peak() if self._group.oom_kills() else 0

    def verdict(self, processes: List[tree.Process]) -> Optional[str]:
        if not self._group.oom_kills():
            return None
        used = self._group.peak() or self._limit  # older kernels keep no peak
        return "used %s of the %s granted (counted and ended by the kernel)" % (shown(used), shown(self._limit))

    def last_word(self) -> Optional[str]:
        return self.verdict([])

    def or_substitute(self) -> "Judge":
        """A limit by measuring, if the user's process could not enter the group."""
        if self._group.processes() or self._group.oom_kills():
            return self
        self.close()
        return MeasuredLimit(self._limit)

    def close(self) -> None:
        self._group.remove()


Judge = Union[MeasuredLimit, CgroupLimit]


def appoint(wanted: spec.Spec) -> Optional[Judge]:
    if wanted.memory_limit is None:
        return None
    limit = int(wanted.memory_limit)
    name = cgroup.safe_name("runyard-%s-%d-%d" % (wanted.key, os.getpid(), time.time()))
    group = cgroup.make(name, limit) if wanted.may_use_cgroup else None
    return CgroupLimit(group, limit) if group is not None else MeasuredLimit(limit)


def total_pss(processes: List[tree.Process]) -> int:
    return sum(_pss(process) for process in processes)


def _pss(process: tree.Process) -> int:
    """RSS stands in where the kernel does not let us look."""
    for name in ("smaps_rollup", "smaps"):
        try:
            found = _PSS_LINE.findall(json_files.read_bytes("/proc/%d/%s" % (process.pid, name)))
            return 1024 * sum(map(int, found))
        except FileNotFoundError:  # an old kernel without the sum, or the process has ended
            continue
        except OSError:
            break
    return process.rss if os.path.exists("/proc/%d" % process.pid) else 0


def shown(size: float) -> str:
    """`1.5 GB` in powers of 1024."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return "%.*f %s" % (0 if unit == 0 or size >= 100 else 1, size, _UNITS[unit])
