"""How the runner and the zygote set up the process they live in."""

import os
import signal

from . import kernel

NOT_STARTED = 127  # the shell's own exit code for a program that could not be started

_CAUGHT = (
    signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, *kernel.SIGNALS,
)  # fmt: skip


def settle_in() -> None:
    """For a runner that was started by itself: what one forked by the zygote gets from the zygote."""
    catch_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, kernel.SIGNALS)
    close_inherited()
    point_to_null(0)
    lead_session()


def catch_signals() -> None:
    """Nothing is ignored: what is ignored stays so in the user's process, what is caught gets its default by execve.

    A parent such as nohup may have had signals ignored; Python itself ignores two.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in _CAUGHT:
        signal.signal(number, lambda *_: None)


def close_inherited() -> None:
    """Everything opened after this is closed by execve, so that the user's process has 0, 1 and 2 only."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            close_quietly(int(name))


def close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # such as the one that listed the directory
        pass


def point_to_null(descriptor: int) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    if null == descriptor:
        os.set_inheritable(null, True)
    else:
        os.dup2(null, descriptor)
        os.close(null)


def lead_session() -> None:
    try:
        os.setsid()
    except PermissionError:  # already the leader of a group: started by a shell, or with a session made for us
        pass


def become(script: bytes, argument: bytes) -> None:
    """Go on as a shell script, where there is one: the same process, so that who waits for us waits for it."""
    if not os.access(script, os.R_OK):
        return
    for notice in (signal.SIGUSR1, signal.SIGUSR2):  # a scheduler's late warning is for the run, which is over
        signal.signal(notice, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execv(b"/bin/sh", [b"/bin/sh", script, argument])


def print_traceback() -> None:
    import traceback  # here, because it is rarely needed and would be in every process that a zygote forks

    traceback.print_exc()
