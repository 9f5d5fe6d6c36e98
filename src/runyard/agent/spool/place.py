"""The directory of a drop box. The owner of a bundle's files is its submitter, so no user may rename another's."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from runyard import errors
from runyard.agent.spool.looking import DIRECTORY

log = logging.getLogger(__name__)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Raises ConfigError if it cannot be used."""
    try:
        box = os.open(path, DIRECTORY)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise errors.ConfigError(f"the drop box {path} cannot be opened: {reason}", "name a directory") from None
    try:
        _check(path, os.fstat(box))
        yield box
    finally:
        os.close(box)


def check(path: Path) -> None:
    """Raises ConfigError, and logs a warning for what is only unwise."""
    with opened(path) as box:
        status = os.fstat(box)
        if not os.access(path, os.W_OK | os.X_OK):
            raise errors.ConfigError(
                f"the drop box {path} is not writable, so states cannot be written", "chmod g+w it"
            )
        if status.st_mode & stat.S_IWGRP and not status.st_mode & stat.S_ISVTX and status.st_gid != os.getegid():
            log.warning("members of its group can rename each other's bundles in %s: chmod +t %s", path, path)


def _check(path: Path, status: os.stat_result) -> None:
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise errors.ConfigError(f"every user can rename bundles of others in {path}", f"chmod +t {path}")


@contextlib.contextmanager
def held(path: Path) -> Iterator[bool]:
    """False while another process serves this drop box. Without locks, no other process is assumed."""
    with opened(path) as box:
        try:
            fcntl.flock(box, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True
