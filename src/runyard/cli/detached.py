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
from runyard.client import locate
from runyard.client.address import Address, complaint
from runyard.client.transport import Transport
from runyard.settings import Settings

START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0
HEALTH_TIMEOUT = 3.0
PAUSE = 0.02
T = TypeVar("T")


def start(settings: Settings, options: Sequence[str]) -> Address:
    """A yard for this home that answers: started now, or found. The home's lock decides between two who try at once."""
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


def answering(home: Path) -> Address | None:
    """The address of this home's yard if it is there and is this home's: a port may have passed to another program."""
    address = locate.running(home)
    if address is None:
        return None
    try:
        health = Transport(address.url, locate.read_token(home), timeout=HEALTH_TIMEOUT).json("GET", "/health")
    except errors.StoreError:  # it is there, and cannot do anything now
        return owner(home)
    except errors.RunyardError:
        return None
    return address if health.get("pid") == address.pid else None


def owner(home: Path) -> Address | None:
    """The yard that holds this home, even when it is too busy or too stuck to answer: its lock proves it."""
    address = locate.running(home)
    if address is None or not locks.is_held_here(home / "lock"):
        return None
    return address if locks.holder_here(home / "lock") == address.pid else None


def stop(address: Address) -> None:
    """SIGTERM, and wait until the process is gone."""
    try:
        os.kill(address.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise errors.Forbidden(f"the yard (process {address.pid}) belongs to somebody else", "ask its owner") from None
    gone = _wait_for(lambda: not locate.is_alive(address.pid) or None, lambda: False, STOP_TIMEOUT)
    if gone is None:
        raise errors.Conflict(f"the yard (process {address.pid}) does not stop", f"kill -9 {address.pid}")


def _spawn(log: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Of a session of its own and with no terminal, so that closing this one does not end it."""
    command = [sys.executable, "-P", "-m", "runyard", "up", *options]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as file:
        log.chmod(0o600)
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd=log.parent,
            env=environ,
        )  # fmt: skip


def _gave_up(child: subprocess.Popen[bytes], home: Path) -> bool:
    """Whether ours has ended, and nobody else's yard of this home is coming up."""
    return child.poll() is not None and not _held_by_another(home, child.pid)


def _held_by_another(home: Path, pid: int) -> bool:
    """The lock names its holder. It is read and not tried: trying could turn away the one who is starting."""
    holder = locks.holder_here(home / "lock")
    return holder is not None and holder != pid and locate.is_alive(holder)


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
