"""Who this machine is. The client and the agent compute the same answers, so that a run knows its way home."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def node_name() -> str:
    return os.uname().nodename


@functools.cache
def host_id() -> str:
    """A stable name of this machine and this Unix user: what one left in the environment, the other may use.

    The node's name is a part of it because containers of one image share their machine-id.
    """
    parts = (_first_text(_MACHINE_IDS), node_name(), str(os.getuid()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def boot_id() -> str:
    """Changes with each start of the machine; a process of another boot id is gone."""
    return _first_text(("/proc/sys/kernel/random/boot_id",)) or _boot_session()


def _boot_session() -> str:
    """macOS keeps the same thing behind a command."""
    try:
        command = ["sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _first_text(paths: tuple[str, ...]) -> str:
    for path in paths:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return ""
