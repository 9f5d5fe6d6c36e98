"""Samples of what the tree uses, one line each in usage.jsonl."""

import os
import resource
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import json_files, kernel, tree

if TYPE_CHECKING:
    from . import nvml

FILE = "usage.jsonl"


class Sampler:
    def __init__(self, gpus: List[str]) -> None:
        self._gpus = gpus
        self._nvml: Optional["nvml.Nvml"] = None
        self._file: Optional[int] = None
        self._when = time.monotonic()
        self._cpu = 0.0

    def write(self, processes: List[tree.Process], cpu_of_ended: float) -> None:
        """Raises OSError when the disk is full; that sample is lost then."""
        sample = self._sample(processes, cpu_of_ended)
        if self._file is None:
            self._file = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        json_files.append(self._file, json_files.line(sample))

    def _sample(self, processes: List[tree.Process], cpu_of_ended: float) -> Dict[str, Any]:
        alive = [process for process in processes if process.alive]
        return {
            "t": round(time.time(), 3),
            "cpu": self._cores(cpu_of_ended + sum(process.ticks for process in processes) / kernel.TICKS),
            "threads": sum(process.threads for process in alive),
            "processes": len(alive),
            "rss": sum(process.rss for process in alive),
            "gpus": self._gpu_usage(),
        }

    def _cores(self, cpu: float) -> float:
        """Cores used since the last sample, from the cpu time used since the start."""
        now = time.monotonic()
        passed, used = now - self._when, cpu - self._cpu
        self._when, self._cpu = now, max(cpu, self._cpu)
        return round(max(used, 0.0) / passed, 3) if passed > 0 else 0.0

    def _gpu_usage(self) -> List[Dict[str, Any]]:
        """The library is opened by the first sample, in the runner itself: a driver does not survive a fork."""
        if self._gpus and self._nvml is None:
            from . import nvml  # here: most runs have no GPU, and an interpreter start is paid for each

            self._nvml = nvml.open_library()
        if self._nvml is None:
            self._gpus = []
            return []
        return [self._nvml.usage(uuid) for uuid in self._gpus]


class Ended:
    """What the processes that have ended used: each tells it for itself and for those it waited for."""

    def __init__(self) -> None:
        self.cpu_time = 0.0
        self.largest = 0  # bytes: the highest RSS of any single one

    def add(self, used: resource.struct_rusage) -> None:
        self.cpu_time += used.ru_utime + used.ru_stime
        self.largest = max(self.largest, used.ru_maxrss * 1024)
