"""Small helpers for the tests of the labs themselves."""

from __future__ import annotations

import os
from pathlib import Path


def alive(pid: int) -> bool:
    """A process that is dead but not reaped does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes_with(text: str) -> list[int]:
    """Everything alive, whoever's parent it has, that carries the text in its arguments or its environment."""
    mark = os.fsencode(text)
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and alive(pid) and mark in _said(pid)]


def _said(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
