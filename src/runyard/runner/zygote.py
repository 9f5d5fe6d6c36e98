"""A process that has everything loaded and forks one runner per request: a start costs a fork, not an interpreter.

It holds no state: killing it disturbs no run, and another one can be started at any time. As the parent of all runners
it also adopts what a killed runner leaves behind, and ends it.
"""

import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from typing import Any, Dict, List, Optional

from . import cgroup, digest, kernel, link, process, records, runner, tree

LOCK = "zygote.lock"
LOG = "zygote.log"
ALREADY_SERVED = 3  # exit code

_IDLE_S = 3600.0
_LOOK_S = 10.0  # between looks whether it is still wanted
_KILL_AGAIN_S = 0.05
_LONGEST_LINE = 1 << 16
_LONGEST_QUEUE = 1 << 22  # bytes for a client that does not read


def main(directory: bytes) -> int:
    """Returns in the caller's process as soon as the zygote listens; that one goes on by itself, detached."""
    os.chdir(directory)
    lock = take_lock()
    if lock is None:
        print("another zygote serves this directory", file=sys.stderr)
        return ALREADY_SERVED
    told, tell = os.pipe()
    if os.fork():
        os.close(tell)
        return 0 if os.read(told, 1) else 1
    _live(lock, tell)
    return 0


def take_lock() -> Optional[int]:
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except OSError:
        os.close(lock)
        return None
