"""What the standard library does not offer of the Linux kernel, and facts about this machine."""

import ctypes
import functools
import os
import signal
import time
from typing import FrozenSet, Optional

SIGNALS: FrozenSet[int] = frozenset(  # a runner waits for these
    {signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
)
FROM_OUTSIDE = SIGNALS - {signal.SIGCHLD}
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

_CLOCK_BOOTTIME = 7  # Python 3.6 has no name for it
PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def die_with_parent() -> None:
    """SIGKILL for this process when the one that forked it ends. An exec keeps it, a fork does not."""
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def adopt_orphans() -> None:
    """Descendants that lose their parent become children of this process, whatever session they are in."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def wait_signal(timeout: float, wanted: FrozenSet[int] = SIGNALS) -> Optional[int]:
    """The next of these, which the caller keeps blocked; None when there was none in `timeout` seconds."""
    info = signal.sigtimedwait(wanted, max(timeout, 0))
    return info.si_signo if info is not None else None


def forget_signals() -> None:
    """Drops those that have come and were not waited for."""
    while signal.sigtimedwait(SIGNALS, 0) is not None:
        pass


def open_process(pid: int) -> Optional[int]:
    """A descriptor of this process, even if its pid is reused; None if this Python has no pidfd."""
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None


def send_signal(pid: int, descriptor: Optional[int], number: int) -> None:
    if descriptor is None:
        os.kill(pid, number)
    else:
        signal.pidfd_send_signal(descriptor, number)


def uptime() -> float:
    """Seconds since this machine was started, including the time that it slept. This clock cannot be set."""
    return time.clock_gettime(_CLOCK_BOOTTIME)


@functools.lru_cache(maxsize=None)
def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


@functools.lru_cache(maxsize=None)
def node() -> str:
    return os.uname()[1]


def node_name() -> str:
    """The scheduler's name for it, or its own host name: for users."""
    return os.environ.get("SLURMD_NODENAME") or node()
