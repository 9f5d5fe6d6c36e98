"""The zygote's runners. One that served a short run without side effects takes the next one: that saves even the fork.

Between two runs a runner waits on a line to the zygote, which ends with either of them.
"""

import os
import selectors
import signal
import socket
import time
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import json_files, kernel, process, runner, scratch, tree

_DONE = b"done"


class ForkedRunner:
    def __init__(self, pid: int, line: socket.socket, directory: str) -> None:
        self.pid = pid
        self.line = line
        self.directory: Optional[str] = directory  # None: it waits for work
        self.idle_since = 0.0


class Nursery:
    def __init__(self, selector: selectors.BaseSelector, foreign: Callable[[], Iterable[int]]) -> None:
        """`foreign` tells which descriptors of the zygote a runner has to close."""
        self.is_bereaved = False  # a runner died and may have left processes behind
        self._selector = selector
        self._foreign = foreign
        self._runners: Dict[int, ForkedRunner] = {}
        self._idle: List[ForkedRunner] = []
        self._notices: List[Dict[str, Any]] = []

    def __len__(self) -> int:
        """How many there are, those that wait included."""
        return len(self._runners)

    @property
    def busy(self) -> int:
        return len(self._runners) - len(self._idle)

    def start(self, directory: str) -> int:
        """The runner's number. Raises OSError when no process can be made."""
        while self._idle:
            idle = self._idle.pop()
            idle.directory = directory
            try:
                idle.line.send(json_files.to_bytes(directory))
                return idle.pid
            except OSError:  # it died; its next and last notice belongs to no run
                idle.directory = None
        return self._fork(directory)

    def take_notices(self) -> List[Dict[str, Any]]:
        taken, self._notices = self._notices, []
        return taken

    def reap(self) -> None:
        """Runners that have ended, and orphans."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._runners:
                self._ended(self._runners.pop(pid), _returncode(status))

    def end_orphans(self) -> None:
        """A child that is no runner was a dead runner's. Repeated until there is none, as their own become ours."""
        self.is_bereaved = bool(tree.end_all(lambda: tree.descendants(os.getpid(), spare=self._runners)))

    def dismiss_idle(self, longer_than_s: float) -> None:
        now = time.monotonic()
        for idle in list(self._idle):
            if now - idle.idle_since >= longer_than_s:
                self._idle.remove(idle)
                self._hang_up(idle)

    def _fork(self, directory: str) -> int:
        zygote, own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A runner waits for these: they stay blocked in it from its first moment on.
        signal.pthread_sigmask(signal.SIG_BLOCK, kernel.SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                zygote.close()
                self._become_runner(own, json_files.to_bytes(directory))
        except OSError:
            zygote.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, kernel.SIGNALS)
            own.close()
        self._runners[pid] = born = ForkedRunner(pid, zygote, directory)
        self._selector.register(zygote, selectors.EVENT_READ, lambda _: self._on_word(born))
        return pid

    def _become_runner(self, line: socket.socket, directory: bytes) -> None:
        """Never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in self._foreign():
                os.close(descriptor)
            for other in self._runners.values():
                other.line.close()
            process.lead_session()
            code = serve(line, directory)
        except BaseException:
            process.print_traceback()
        finally:
            os._exit(code)

    def _on_word(self, speaker: ForkedRunner) -> None:
        """Its run is over, or its line is closed: then it will be reaped."""
        try:
            is_done = speaker.line.recv(len(_DONE)) == _DONE
        except OSError:
            is_done = False
        if not is_done:
            self._hang_up(speaker)
        elif speaker.directory is not None:
            self._notices.append({"ended": speaker.directory, "pid": speaker.pid, "status": 0})
            speaker.directory, speaker.idle_since = None, time.monotonic()
            self._idle.append(speaker)

    def _ended(self, dead: ForkedRunner, code: int) -> None:
        if dead in self._idle:
            self._idle.remove(dead)
        self._hang_up(dead)
        self.is_bereaved = self.is_bereaved or code != 0
        if dead.directory is not None:
            self._notices.append({"ended": dead.directory, "pid": dead.pid, "status": code})

    def _hang_up(self, runner: ForkedRunner) -> None:
        if runner.line.fileno() >= 0:
            self._selector.unregister(runner.line)
            runner.line.close()


def serve(line: socket.socket, directory: bytes) -> int:
    """One run after the other, as long as they have no side effects and the zygote has more."""
    try:
        return _serve(line, directory)
    finally:
        scratch.let_go()


def _serve(line: socket.socket, directory: bytes) -> int:
    while directory:
        outcome = runner.run(directory, may_stay=True)
        if not outcome.is_recorded or not outcome.is_clean:
            return 0 if outcome.is_recorded else 1
        try:
            line.send(_DONE)
            directory = line.recv(1 << 16)
        except OSError:  # the zygote is gone
            return 0
        kernel.forget_signals()  # what was meant for a run that is over must not hit the next one
    return 0


def _returncode(status: int) -> int:
    """As subprocess gives it: a signal is negative."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
