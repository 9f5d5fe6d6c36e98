"""The node's side of a remote agent: starts runners, watches them, reports the node's resources.

It is loaded by the far half of a host, which may keep it for many requests or for one. No important state is in
memory. Arguments and answers are JSON; directories come as text that may hold any bytes.
"""

import errno
import os
import re
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import HERE, capacity, json_files, kernel, sessions, supervisor

# Of the connection, and of the session that ends with it: none of that is meant for runs.
_NOT_FOR_RUNS = re.compile(r"RUNYARD_\w*|SSH_\w+|XDG_SESSION_\w+|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS|SHLVL|OLDPWD")

Json = Dict[str, Any]

_attendant = supervisor.Attendant()
_runners: Dict[bytes, "subprocess.Popen[bytes]"] = {}  # attempt directory → the runner that was started here


def start(directories: List[str], boot_id: str = "", permits: Sequence[Tuple[str, float]] = ()) -> List[Optional[str]]:
    """Start a runner for each, detached from the caller; returns errors, if any. For `permits` see `renew`."""
    if not os.path.exists(os.path.join(HERE, "__main__.py")):
        raise FileNotFoundError(errno.ENOENT, "no runner is here any more", HERE)
    _reap()
    renew(boot_id, permits)
    return [_start(json_files.to_bytes(directory)) for directory in directories]


def look(directories: List[str]) -> List[Json]:
    _reap()
    return [_look(json_files.to_bytes(directory)) for directory in directories]


def stop(stops: List[Json]) -> List[bool]:
    """For each: False if its runner did not react, and was killed."""
    return [
        _attendant.stop(json_files.to_bytes(stop["directory"]), stop["reason"], stop["grace"], stop["waited"])
        for stop in stops
    ]


def renew(boot_id: str, permits: Sequence[Tuple[str, float]]) -> Json:
    """Directories, and until when the runs there may live: by our clock, if this machine was not restarted since it was
    asked for it. The answer is what the clock says now."""
    for directory, until in permits if boot_id == kernel.boot_id() else ():
        _attendant.renew(json_files.to_bytes(directory), until)
    return {"boot_id": kernel.boot_id(), "uptime": kernel.uptime()}


def describe() -> Json:
    return {
        "node": kernel.node(),
        "boot_id": kernel.boot_id(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "cpus": capacity.usable_cpus(),
        "memory": capacity.usable_memory(),
        "gpus": capacity.gpus(),
        "survives_sessions": sessions.are_survived(),
    }


def _start(directory: bytes) -> Optional[str]:
    env = {name: value for name, value in os.environ.items() if not _NOT_FOR_RUNS.fullmatch(name)}
    # Isolated: neither the user's modules nor site-packages have any business in a runner.
    words = [*sessions.outlasting(), sys.executable, "-I", "-S", HERE, "run"]
    command, null = [*map(os.fsencode, words), directory], subprocess.DEVNULL
    try:
        _runners[directory] = subprocess.Popen(
            command, stdin=null, stdout=null, stderr=null, cwd="/", env=env, start_new_session=True
        )
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _look(directory: bytes) -> Json:
    found = _attendant.look(directory)
    is_under_way = found["presence"] == supervisor.ABSENT and directory in _runners
    return supervisor.sighting(supervisor.PENDING) if is_under_way else found


def _reap() -> None:
    for directory, process in list(_runners.items()):
        if process.poll() is not None:
            del _runners[directory]
