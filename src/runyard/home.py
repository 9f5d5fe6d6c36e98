"""The home directory of a yard: who may use it, and who is using it now."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runyard import errors, machine
from runyard.settings import Settings

LOCK_PAUSE = 0.05


def prepare(settings: Settings) -> None:
    """Make the home, for its owner alone."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.home.stat().st_uid == os.getuid():
            settings.home.chmod(0o700)
    except OSError as error:
        raise errors.ConfigError(
            f"{settings.home} cannot be used: {error.strerror}", "set RUNYARD_HOME to another place"
        ) from None


def is_on_network(settings: Settings) -> bool:
    """Whether other machines share this home, so that a daemon's SQLite file would not be safe in it."""
    if settings.network_home == "auto":
        return machine.is_network_filesystem(settings.home)
    return settings.network_home == "yes"


def has_daemon(settings: Settings) -> bool:
    """Whether a yard may stay running here. Without one, each command is a yard for as long as it runs."""
    return settings.daemon == "auto" and (bool(settings.store) or not is_on_network(settings))


def refuse_daemon(settings: Settings) -> None:
    if has_daemon(settings):
        return
    if settings.daemon == "no":
        raise errors.ConfigError(f"{settings.home} is set up without a daemon", "let cron do the work: `runyard check`")
    raise errors.ConfigError(
        f"{settings.home} is on a network file system, where a yard cannot run as a daemon",
        "let cron do the work (`runyard check --crontab`), set RUNYARD_HOME to a local disk, or `store` to PostgreSQL",
    )


@contextlib.contextmanager
def lock(settings: Settings, wait: float = 0.0) -> Iterator[None]:
    """Own the home while the context is open. The file names the holder, so that a refusal can.

    Where several machines see the home, the kernel's lock may not reach the others: then the name of a holder on
    another machine counts as well, until that one takes it out.
    """
    prepare(settings)
    deadline = time.monotonic() + wait
    handle = os.open(settings.home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _take(handle, shared=is_on_network(settings)):
            if time.monotonic() >= deadline:
                raise errors.HomeInUse(f"{settings.home} is in use by {_name(_holder(handle))}", _way_out(handle))
            time.sleep(LOCK_PAUSE)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def is_held_elsewhere(settings: Settings) -> bool:
    """Whether the holder that the lock names is on another machine."""
    handle = os.open(settings.home / "lock", os.O_RDONLY)
    try:
        return _is_elsewhere(_holder(handle))
    finally:
        os.close(handle)


def _take(handle: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    if shared and _is_elsewhere(_holder(handle)):
        fcntl.flock(handle, fcntl.LOCK_UN)
        return False
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(_me()).encode(), 0)
    os.fsync(handle)
    return True


def _me() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "boot_id": machine.boot_id()}


def _is_elsewhere(holder: dict[str, Any]) -> bool:
    """Held by a process of another machine, of which nothing can be known from here. A restart of this one freed it."""
    return bool(holder) and holder.get("host") != socket.gethostname()


def _holder(handle: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _name(holder: dict[str, Any]) -> str:
    return f"process {holder.get('pid')} on {holder.get('host')}" if holder else "another process"


def _way_out(handle: int) -> str:
    holder = _holder(handle)
    if _is_elsewhere(holder):
        return f"work on {holder['host']}; if it is gone for good, remove the file `lock` in the home"
    return "stop it with `runyard down`, or set another RUNYARD_HOME"


def first_token(path: Path) -> str:
    """The owner's token: made at the first start, readable by the owner alone."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        secret = "ry_" + secrets.token_urlsafe(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret + "\n")
        return secret
