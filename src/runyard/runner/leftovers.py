"""Ends what a dead runner left behind: processes with the attempt's tag, in its sessions or its control group."""

import os
import time
from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple, Union

from . import cgroup, json_files, kernel, scratch, tree

_PATIENCE_S = 5.0
_PAUSE_S = 0.02
_MARGIN_S = 10.0  # between a runner's last sign of life and its death


def sweep(directory: Union[str, bytes]) -> Dict[str, int]:
    """Kills until nothing is found. `left` counts what could not be killed within a few seconds."""
    traces = Traces(os.fsencode(directory))
    deadline = time.monotonic() + _PATIENCE_S
    seen: Set[int] = set()
    left = traces.find()
    while left and time.monotonic() < deadline:
        seen |= tree.end_all(traces.find)
        time.sleep(_PAUSE_S)
        left = traces.find()
    traces.remove_cgroup()
    traces.remove_scratch()
    return {"killed": len(seen - left), "left": len(left)}


class Traces:
    """What an attempt's directory tells about its processes."""

    def __init__(self, directory: bytes) -> None:
        spec = _document(directory, b"spec.json")
        runner = _document(directory, b"started/runner.json")
        status = _document(directory, b"status.json")
        self._variable = json_files.to_bytes("RUNYARD_TAG=%s" % spec["tag"]) if spec.get("tag") else None
        same_boot = runner.get("boot_id") == kernel.boot_id()
        # A runner that has written its record may live on, with another attempt.
        is_open = same_boot and status.get("state") != "ended"
        sessions = (runner.get("session"), status.get("child")) if is_open else ()
        self._sessions: FrozenSet[int] = frozenset(number for number in sessions if number)
        self._lifetime = _lifetime(directory, runner) if same_boot else (0, 0)
        self._scratch = json_files.to_bytes(runner.get("scratch") or "")
        group = runner.get("cgroup") if same_boot else None
        self._group: Optional[cgroup.Group] = cgroup.Group(group, cgroup.V1) if group else None

    def find(self) -> Set[int]:
        """Everything alive that belongs to the attempt, with all descendants; never the caller itself."""
        alive = [process for process in tree.every_process() if process.alive]
        found = set(self._group.processes()) if self._group is not None else set()
        found |= {process.pid for process in alive if self._is_ours(process)}
        grown = _with_descendants(found, alive)
        return grown - {os.getpid()}

    def remove_cgroup(self) -> None:
        if self._group is not None:
            self._group.remove()

    def remove_scratch(self) -> None:
        scratch.remove_after_death(self._scratch)

    def _is_ours(self, process: tree.Process) -> bool:
        return self._in_session(process) or self._is_tagged(process)

    def _in_session(self, process: tree.Process) -> bool:
        """A session's number may be in use again; but not by anything that started while the runner lived."""
        begun, ended = self._lifetime
        return process.session in self._sessions and begun <= process.start_time <= ended

    def _is_tagged(self, process: tree.Process) -> bool:
        if self._variable is None:
            return False
        try:
            return self._variable in json_files.read_bytes("/proc/%d/environ" % process.pid).split(b"\0")
        except OSError:  # gone, or another user's
            return False


def _document(directory: bytes, name: bytes) -> Dict[str, Any]:
    document = json_files.read(os.path.join(directory, name))
    return document if isinstance(document, dict) else {}


def _lifetime(directory: bytes, runner: Dict[str, Any]) -> Tuple[int, int]:
    """From the runner's start to its last sign of life, in ticks since boot."""
    signs = []
    for name in (b"status.json", b"started"):
        try:
            signs.append(os.stat(os.path.join(directory, name)).st_mtime)
        except OSError:
            continue
    uptime = float(json_files.read_bytes("/proc/uptime").split()[0])
    quiet_for = time.time() - max(signs, default=0.0) - _MARGIN_S
    return int(runner.get("start_time") or 0), int((uptime - quiet_for) * kernel.TICKS)


def _with_descendants(found: Set[int], alive: List[tree.Process]) -> Set[int]:
    grown = set(found)
    while True:
        new = {process.pid for process in alive if process.parent in grown} - grown
        if not new:
            return grown
        grown |= new
