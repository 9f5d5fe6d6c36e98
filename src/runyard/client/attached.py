"""A yard for as long as this process lives: where a home has no daemon, each command brings its own."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from runyard import __version__, errors
from runyard.client.address import Address, complaint

FAREWELL_S = 30.0

_lock = threading.Lock()
_children: dict[Path, tuple[subprocess.Popen[bytes], Address]] = {}


def yard(home: Path) -> Address:
    """The address of this process's own yard of that home; it ends when we do, however we end."""
    with _lock:
        known = _children.get(home)
        if known is not None and known[0].poll() is None:
            return known[1]
        # A file and not a pipe: nobody reads what it says while it serves, and a full pipe would stop it.
        with tempfile.TemporaryFile() as said:
            child = _spawn(home, said)
            assert child.stdout is not None
            url = child.stdout.readline().decode().strip()
            if not url:
                child.wait()
                said.seek(0)
                raise errors.YardUnreachable(*complaint(said.read().decode("utf-8", "replace")))
        _children[home] = (child, Address(url=url, pid=child.pid, version=__version__))
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
