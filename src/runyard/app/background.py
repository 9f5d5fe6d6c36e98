"""Starting a yard in the background, and stopping the one of this home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from runyard import errors, locks
from runyard.client import find_yard
from runyard.client.address import YardAddress, complaint
from runyard.client.transport import Transport
from runyard.settings import Settings

START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0
HEALTH_TIMEOUT = 3.0
PAUSE = 0.02
T = TypeVar("T")


def start(settings: Settings, options: Sequence[str]) -> YardAddress:
    """A yard of this home that answers: started now, or found. The home's lock decides between concurrent starts."""
    found = answering(settings.home)
    if found is not None:
        return found
    log = settings.home / "yard.log"
    before = log.stat().st_size if log.exists() else 0
    child = _spawn(log, options)
    address = _wait_for(lambda: answering(settings.home), lambda: _gave_up(child, settings.home))
    if address is not None:
        return address
    raise _explain(log, before, child.poll())


def answering(home: Path) -> YardAddress | None:
    """The address of this home's yard, if it answers and is this home's: another program may use the port now."""
    address = find_yard.running(home)
    if address is None:
        return None
    try:
        health = Transport(address.url, find_yard.read_token(home), timeout=HEALTH_TIMEOUT).json("GET", "/health")
    except errors.StoreError:  # it is running, but cannot do anything now
        return owner(home)
    except errors.RunyardError:
        return None
    return address if health.get("pid") == address.pid else None


def owner(home: Path) -> YardAddress | None:
    """The yard that holds this home, even if it does not answer: its lock proves it."""
    address = find_yard.running(home)
    if address is None or not locks.is_held_here(home / "lock"):
        return None
    return address if locks.holder_here(home / "lock") == address.pid else None


def stop(address: YardAddress) -> None:
    """SIGTERM, and wait until the process has ended."""
    try:
        os.kill(address.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise errors.Forbidden(f"the yard (process {address.pid}) belongs to another user", "ask its owner") from None
    gone = _wait_for(lambda: not find_yard.is_alive(address.pid) or None, lambda: False, STOP_TIMEOUT)
    if gone is None:
        raise errors.Conflict(f"the yard (process {address.pid}) does not stop", f"kill -9 {address.pid}")


def _spawn(log: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    """In its own session and without a terminal, so that closing this one does not end it."""
    command = [sys.executable, "-P", "-m", "runyard", "up", *options]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as file:
        log.chmod(0o600)
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd=log.parent,
            env=environ,
        )  # fmt: skip


def _gave_up(child: subprocess.Popen[bytes], home: Path) -> bool:
    """Whether our process has ended, and no other yard of this home is starting."""
    return child.poll() is not None and not _held_by_another(home, child.pid)


def _held_by_another(home: Path, pid: int) -> bool:
    """The lock names its holder. It is only read: locking it could stop the yard that is starting."""
    holder = locks.holder_here(home / "lock")
    return holder is not None and holder != pid and find_yard.is_alive(holder)


def _wait_for(look: Callable[[], T | None], over: Callable[[], bool], seconds: float = START_TIMEOUT) -> T | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None or over():
            return found
        time.sleep(PAUSE)
    return None


def _explain(log: Path, before: int, code: int | None) -> errors.RunyardError:
    with log.open("rb") as file:
        file.seek(before)
        said = file.read(1 << 20).decode("utf-8", "replace")
    if code is None:
        return errors.YardUnreachable(f"the yard did not answer within {START_TIMEOUT:g} s", f"look into {log}")
    message, fix = complaint(said)
    return errors.RunyardError(message, fix or f"look into {log}")
