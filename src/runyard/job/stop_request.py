"""Whether the run is requested to end: by its stop or warning signal, or by files of its agent and its runner.

The signals arrive at once, and at the first process or its group. The files say the same, also to processes and
threads that no signal reaches: `stop` in control.json (cancelled, early stopping), `ending` in status.json (the time
limit too).
"""

import json
import os
import signal
import time
from types import FrameType
from typing import Any, Callable, Dict, Optional, Set, Tuple

_LOOK_S = 0.2  # between two looks at the files
_SIGNALS = ("RUNYARD_STOP_SIGNAL", "RUNYARD_WARNING_SIGNAL")
_USER_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)  # ignored from the start in some runs under Grid Engine


def should_stop() -> bool:
    """True when the run is requested to end: by early stopping, cancel or its time limit. Once true, it stays true.

    Cheap enough for every step. It is also the safe point at which `checkpointing` saves. The first call installs
    handlers for the stop and the warning signal, unless the program has its own: without one the signals end the run.
    """
    asking.polled = True
    asking.listen(insist=False)
    asking.look()
    asking.save_if_asked()
    return asking.warnings > 0


class Asking:
    """State of this process; a forked process has its own."""

    def __init__(self) -> None:
        self.warnings = 0
        self.polled = False  # the program calls should_stop, so that there is a safe point to save at
        self.save: Optional[Callable[[], None]] = None
        self._saved = 0  # for how many warnings
        self._is_saving = False
        self._before: Dict[int, Any] = {}  # signal → what was done about it before
        self._is_listening = False
        self._mask: Optional[Set[Any]] = None  # of signals, while a child is being made
        self._process = os.getpid()
        self._look_at = float("-inf")
        self._seen: Dict[str, Tuple[int, int, int]] = {}

    def listen(self, insist: bool) -> None:
        """Catch the signals. `insist`: also those that the program handles; its handler runs after ours."""
        if self._is_listening and not insist:
            return
        for number in _numbers() - set(self._before):
            known = signal.getsignal(number)
            if known is None or not (insist or _is_untouched(number, known)):
                continue
            try:
                signal.signal(number, self._hear)
            except ValueError:  # not in the main thread, where signals are not ours to handle; the files tell, too
                return
            self._before[number] = known
        self._is_listening = True

    def forget(self) -> None:
        """Restore the previous handlers."""
        while self._before:
            number, known = self._before.popitem()
            try:
                signal.signal(number, known)
            except ValueError:
                pass
        self._is_listening = False

    def look(self) -> None:
        """Check the files, from time to time."""
        if self.warnings or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_S
        control = os.environ.get("RUNYARD_CONTROL")
        if control:
            status = os.path.join(os.path.dirname(control), "status.json")
            if self._news(control).get("stop") or self._news(status).get("ending"):
                self.warnings += 1

    def save_if_asked(self) -> None:
        """At most once for each warning."""
        if self.save is None or self._is_saving or self._saved == self.warnings:
            return
        self._saved, self._is_saving = self.warnings, True
        try:
            self.save()
        finally:
            self._is_saving = False

    def hold(self) -> None:
        """Before a fork: Python would lose a signal that comes while the child is being made."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(self._before)) if self._before else None

    def release(self) -> None:
        if self._mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def restart(self) -> None:
        """In a forked child: it did not install these handlers, and a signal to it is not one to us."""
        self.forget()
        self.release()
        self.__init__()  # type: ignore[misc]

    def _hear(self, number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != self._process:  # forked by a Python before 3.7, or in C
            self.restart()
            os.kill(os.getpid(), number)
            return
        self.warnings += 1
        known = self._before.get(number)
        saves_here = self.save is not None and not self.polled
        if saves_here:  # there is no better moment than this one
            self.save_if_asked()
        if callable(known) and known is not signal.default_int_handler:
            known(number, frame)
        elif saves_here:
            raise SystemExit(128 + number)  # what was saved is the last of it; by itself the signal would have ended us

    def _news(self, path: str) -> Dict[str, Any]:
        """A file that has changed since it was last read; empty otherwise, and where it cannot be read."""
        try:
            found = os.stat(path)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if self._seen.get(path) == seen:
                return {}
            with open(path, "rb") as file:
                document = json.loads(file.read().decode("utf-8", "replace"))
        except (OSError, ValueError):
            return {}
        self._seen[path] = seen
        return document if isinstance(document, dict) else {}


def _numbers() -> Set[int]:
    """The signals that request the end of this run; none outside a run."""
    names = (os.environ.get(variable) for variable in _SIGNALS)
    return {int(getattr(signal, "SIG" + name)) for name in names if name and hasattr(signal, "SIG" + name)}


def _is_untouched(number: int, known: Any) -> bool:
    if known in (signal.SIG_DFL, signal.default_int_handler):
        return True
    return known == signal.SIG_IGN and number in _USER_SIGNALS


asking = Asking()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=asking.hold, after_in_parent=asking.release, after_in_child=asking.restart)
