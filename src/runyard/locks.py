"""Exclusive locks on a local disk or one that several machines share. A refused process learns who holds the lock.

`<path>` carries the kernel's lock, which decides between processes of one machine. `<path>.holder` names the holder.
On a shared disk, the kernel's lock may not be seen by other machines: there the holder file decides as well. It is
created with link(2), which succeeds on one machine only, and counts until its holder deletes it. The file of a killed
process is deleted by the next one of the same machine; another machine cannot know that it was killed, and is
refused. Only a holder with a bound, after which it has ended by itself or can do no harm, expires.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runyard import machine

SLACK_S = 30.0  # beyond a holder's bound: for differences between clocks


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    pid: int
    host: str
    boot_id: str
    mark: str = ""  # distinguishes two locks of one process
    bound: float | None = None  # seconds after which this holder expires

    @property
    def is_elsewhere(self) -> bool:
        """On another machine, whose processes cannot be checked from here."""
        return self.host != socket.gethostname()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Held(Exception):
    """Another process holds it; its name is unknown if it has not written its holder file yet."""

    def __init__(self, holder: Holder | None) -> None:
        super().__init__(str(holder or "another process"))
        self.host = holder.host if holder is not None else ""
        self.is_elsewhere = holder is not None and holder.is_elsewhere


@contextlib.contextmanager
def held(path: Path, *, shared: bool, bound: float | None = None) -> Iterator[Callable[[], None]]:
    """Hold it while the context is open; raises Held. Its directory must exist.

    A `bound` is seconds after which our lock expires. Calling the returned function renews it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    me = Holder(
        pid=os.getpid(), host=socket.gethostname(), boot_id=machine.boot_id(), mark=secrets.token_hex(8), bound=bound
    )
    try:
        _take(descriptor, _name_file(path), me, shared)
        try:
            yield lambda: _renew(_name_file(path), me)
        finally:
            _let_go(_name_file(path), me)
    finally:
        os.close(descriptor)


def holder_here(path: Path) -> int | None:
    """The process of this machine in the holder file, since the machine's last start; it may have ended."""
    named = _read(_name_file(path))
    here = named is not None and not named.is_elsewhere and named.boot_id == machine.boot_id()
    return named.pid if named is not None and here else None


def is_held_here(path: Path) -> bool:
    """Whether a process of this machine holds it now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _name_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


def _take(descriptor: int, name: Path, me: Holder, shared: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Held(_read(name)) from None
    draft = _aside(name, me)
    _write(draft, me)
    try:
        if shared:
            _take_name(name, draft, me)
        else:
            os.replace(draft, name)
    finally:
        draft.unlink(missing_ok=True)


def _take_name(name: Path, draft: Path, me: Holder) -> None:
    """Raises Held. We have the kernel's lock: no other process of this machine is here."""
    if _link(draft, name):
        return
    there = _read(name)
    if there == me:  # the first try succeeded, and its answer was lost on the way from the file server
        return
    if there is not None and there.is_elsewhere and not _is_over(there, name, draft):
        raise Held(there)
    if not _put_away(name, there, me) or not _link(draft, name):
        raise Held(_read(name))


def _link(draft: Path, name: Path) -> bool:
    try:
        os.link(draft, name)
    except FileExistsError:
        return False
    return True


def _is_over(there: Holder, name: Path, now: Path) -> bool:
    """Past its bound, by the clock of the file server, which set the times of both files."""
    with contextlib.suppress(FileNotFoundError):
        return there.bound is not None and now.stat().st_mtime - name.stat().st_mtime > there.bound + SLACK_S
    return False


def _put_away(name: Path, judged: Holder | None, me: Holder) -> bool:
    """Delete the holder file of a process that has ended. False: it was another one by then, and is restored."""
    aside = _aside(name, me, "gone")
    try:
        os.rename(name, aside)
    except FileNotFoundError:
        return True
    is_it = _read(aside) == judged
    if not is_it:
        _link(aside, name)
    aside.unlink(missing_ok=True)
    return is_it


def _renew(name: Path, me: Holder) -> None:
    with contextlib.suppress(OSError):
        if _read(name) == me:
            os.utime(name)


def _let_go(name: Path, me: Holder) -> None:
    if _read(name) == me:
        name.unlink(missing_ok=True)


def _aside(name: Path, me: Holder, word: str = "draft") -> Path:
    return name.with_name(f"{name.name}.{me.mark}.{word}")


def _write(path: Path, me: Holder) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(me), file)
        file.flush()
        os.fsync(file.fileno())


def _read(name: Path) -> Holder | None:
    """None also for an invalid file."""
    try:
        return Holder(**json.loads(name.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
