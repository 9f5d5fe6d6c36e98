"""The parent of a lab's daemons: a program of its own that lives exactly as long as its standard input.

Job processes leave their daemon by a double fork. This process is their subreaper, so they come back to it, and
ending the lab is ending its own descendants: nothing is searched by name. When the test run dies, however it dies,
standard input ends and everything goes, the directories and control groups named on the command line included.

Requests and answers are lines of JSON. Only the standard library, because it starts with `python -I -S`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)

Answer = dict[str, Any]


def main(leftovers: list[str]) -> None:
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # Ctrl-C is for the test run; we follow its end
        signal.signal(number, signal.SIG_IGN)
    supervisor = Supervisor()
    supervisor.answer({"ready": os.getpid()})
    supervisor.serve()
    supervisor.end_all()
    for leftover in leftovers:
        remove(Path(leftover))


class Supervisor:
    def __init__(self) -> None:
        self._pids: dict[str, int] = {}  # by daemon name, while it lives

    def serve(self) -> None:
        rest = b""
        while chunk := self._read():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.answer(self._handle(json.loads(line)))

    def answer(self, answer: Answer) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps(answer).encode() + b"\n")

    def end_all(self) -> None:
        """Daemons first; what they leave comes back to us, until nothing does."""
        deadline = time.monotonic() + 60
        while (children := _children()) and time.monotonic() < deadline:
            for pid in children:
                _send(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.005)

    def _read(self) -> bytes:
        while True:
            ready, _, _ = select.select([0], [], [], 0.2)
            self._reap()
            if ready:
                return os.read(0, 1 << 16)

    def _handle(self, request: dict[str, Any]) -> Answer:
        handlers: dict[str, Callable[..., Answer]] = {
            "spawn": self._spawn, "run": self._run, "signal": self._signal, "alive": self._alive,
        }  # fmt: skip
        try:
            return handlers[request.pop("do")](**request)
        except (OSError, subprocess.SubprocessError) as error:
            return {"error": str(error)}

    def _spawn(self, name: str, command: list[str], env: dict[str, str], log: str) -> Answer:
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip
        process.returncode = 0  # reaped here like every other child; Popen must not wait for a pid that is gone
        self._pids[name] = process.pid
        return {"pid": process.pid}

    def _run(self, command: list[str]) -> Answer:
        """To the end, here and now; for the short commands that prepare a machine."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode:
            return {"error": f"{' '.join(command)}: {done.stderr.strip() or f'exit {done.returncode}'}"}
        return {"output": done.stdout}

    def _signal(self, name: str, number: int, wait_s: float) -> Answer:
        """`gone` tells whether the daemon ended within the time."""
        if name in self._pids:
            _send(self._pids[name], number)
        deadline = time.monotonic() + wait_s
        while name in self._pids and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.002)
        return {"gone": name not in self._pids}

    def _alive(self) -> Answer:
        self._reap()
        return {"pids": self._pids}

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                self._pids = {name: pid for name, pid in self._pids.items() if pid != ended}


def _die_with_parent() -> None:
    """For the one death that end_all cannot follow: our own SIGKILL."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _children() -> list[int]:
    """Also the dead ones that nobody has reaped yet."""
    me = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == me]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def remove(path: Path) -> None:
    """The whole tree; processes and other machines of a lab may still be writing into it as they end."""
    deadline = time.monotonic() + 60
    while path.exists() and time.monotonic() < deadline:
        if path.is_relative_to("/sys/fs/cgroup"):
            _remove_group(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
        time.sleep(0.01)


def _remove_group(path: Path) -> None:
    """A control group goes by rmdir, its inner groups first; its files are no files."""
    for directory, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


if __name__ == "__main__":
    main(sys.argv[1:])
