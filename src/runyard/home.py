"""The home directory of a yard: whether it may be used, and which process uses it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from runyard import errors, locks, machine
from runyard.settings import Settings

LOCK_PAUSE = 0.05


def prepare(settings: Settings) -> None:
    """Create the home, accessible to its owner only."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.home.stat().st_uid == os.getuid():
            settings.home.chmod(0o700)
    except OSError as error:
        raise errors.ConfigError(
            f"{settings.home} cannot be used: {error.strerror}", "set RUNYARD_HOME to another directory"
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
    if settings.url:
        raise errors.ConfigError(f"{settings.home} is for the yard at {settings.url}", "set another RUNYARD_HOME")
    if has_daemon(settings):
        return
    if settings.daemon == "no":
        raise errors.ConfigError(f"{settings.home} is set up without a daemon", "let cron do the work: `runyard check`")
    raise errors.ConfigError(
        f"{settings.home} is on a network file system, where a yard cannot run as a daemon",
        "let cron do the work (`runyard check --crontab`), set RUNYARD_HOME to a local disk, or `store` to PostgreSQL",
    )


@contextlib.contextmanager
def lock(settings: Settings, wait: float = 0.0, bound: float | None = None) -> Iterator[None]:
    """Lock the home while the context is open; raises HomeInUse, DiskFull. `bound`: this process ends within so many
    seconds."""
    prepare(settings)
    deadline = time.monotonic() + wait
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locks.held(settings.home / "lock", shared=is_on_network(settings), bound=bound))
                break
            except locks.Held as held:
                if time.monotonic() >= deadline:
                    raise _in_use(settings, held) from None
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise errors.DiskFull(f"no yard can start in {settings.home}: its disk is full") from None
            time.sleep(LOCK_PAUSE)
        yield


def _in_use(settings: Settings, held: locks.Held) -> errors.HomeInUse:
    fix = "stop it with `runyard down`, or set another RUNYARD_HOME"
    if held.is_elsewhere:
        fix = f"work on {held.host}; if it is gone for good, remove the file `lock.holder` in the home"
    return errors.HomeInUse(f"{settings.home} is in use by {held}", fix, elsewhere=held.is_elsewhere)


def first_token(path: Path) -> str:
    """The owner's token: created at the first start, readable by the owner only."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        secret = "ry_" + secrets.token_urlsafe(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret + "\n")
        return secret
