"""How the runner and the zygote set up the process they live in."""

import os
import signal

from . import kernel


def settle_in() -> None:
    """For a runner that was started by itself: what one forked by the zygote gets from the zygote."""
    default_signals()
    wait_for_signals()
    close_inherited()
    point_to_null(0)
    lead_session()


def default_signals() -> None:
    """A parent such as nohup may have had signals ignored, and ignored signals are inherited."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def wait_for_signals() -> None:
    """The runner never handles SIGNALS, it waits for them: they stay blocked, with their default meaning."""
    signal.pthread_sigmask(signal.SIG_BLOCK, kernel.SIGNALS)
    for number in kernel.SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def signals_of_a_new_program() -> None:
    """Undoes the above and what Python itself ignores, just before execve."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


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


def print_traceback() -> None:
    import traceback  # here, because it is rarely needed and would be in every process that a zygote forks

    traceback.print_exc()
