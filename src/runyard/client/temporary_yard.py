"""A yard that lives as long as this process: if a home has no daemon, each command starts its own."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from runyard import errors
from runyard.client.address import YardAddress, complaint
from runyard.version import __version__

FAREWELL_S = 30.0

_lock = threading.Lock()
_children: dict[Path, tuple[subprocess.Popen[bytes], YardAddress]] = {}


def yard(home: Path) -> YardAddress:
    """The address of this process's own yard for that home; it ends with this process, however that ends."""
    with _lock:
        known = _children.get(home)
        if known is not None and known[0].poll() is None:
            return known[1]
        # A file and not a pipe: its output is not read while it serves, and a full pipe would block it.
        with tempfile.TemporaryFile() as said:
            child = _spawn(home, said)
            assert child.stdout is not None
            url = child.stdout.readline().decode().strip()
            if not url:
                child.wait()
                said.seek(0)
                raise errors.YardUnreachable(*complaint(said.read().decode("utf-8", "replace")))
        _children[home] = (child, YardAddress(url=url, pid=child.pid, version=__version__))
        return _children[home][1]


def _spawn(home: Path, said: IO[bytes]) -> subprocess.Popen[bytes]:
    """Its standard input is a pipe that only we hold: the kernel closes it with us."""
    command = [sys.executable, "-P", "-m", "runyard", "up", "--attached"]
    environ = {**os.environ, "RUNYARD_HOME": str(home), "RUNYARD_LOG_LEVEL": "error", "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, stderr=said, start_new_session=True)


def _end_all() -> None:
    """Close the pipes and wait: the next command finds the home free."""
    for child, _ in _children.values():
        child.communicate(timeout=FAREWELL_S)


atexit.register(_end_all)
