"""The home directory of a yard: who may use it, and who is using it now."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from runyard import errors, machine
from runyard.settings import Settings


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


def refuse_network_home(settings: Settings, *, network: bool) -> None:
    """A daemon's SQLite file needs locks and shared memory that network file systems do not give."""
    if network and not settings.store:
        raise errors.ConfigError(
            f"{settings.home} is on a network file system, where a yard cannot run as a daemon",
            "set RUNYARD_HOME to a local disk, or `store` to a PostgreSQL address",
        )


@contextlib.contextmanager
def lock(settings: Settings) -> Iterator[None]:
    """Own the home while the context is open. The file names the holder, so that a refusal can."""
    prepare(settings)
    handle = os.open(settings.home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(handle, settings.home)
        yield
    finally:
        os.close(handle)


def _take(handle: int, home: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise errors.HomeInUse(
            f"{home} is in use by {_holder(handle)}", "stop it with `runyard down`, or set another RUNYARD_HOME"
        ) from None
    me = {"pid": os.getpid(), "host": socket.gethostname(), "boot_id": machine.boot_id()}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(me).encode(), 0)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError):
        return "another process"


def first_token(path: Path) -> str:
    """The owner's token: made at the first start, readable by the owner alone."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        secret = "ry_" + secrets.token_urlsafe(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret + "\n")
        return secret
