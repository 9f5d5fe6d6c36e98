"""Locks of files. On a file system without locks none is used: in the worst case something is built twice."""

import contextlib
import errno
import fcntl
import os
from typing import Iterator, Optional

TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


def take(path: str) -> Optional[int]:
    """The open file whose lock is ours until the last copy of it is closed; None: another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            os.close(descriptor)
            return None
    return descriptor


@contextlib.contextmanager
def held(path: str, kind: int) -> Iterator[None]:
    """Waits for it: it is never held for long."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)
