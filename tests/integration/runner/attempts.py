"""Attempts as an agent would make them: a directory with a spec, a runner started on it, and what it leaves there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from runyard.runner import leftovers

PATIENCE_S = 90.0


class Attempt:
    def __init__(self, directory: Path, runner: str, python: str, **spec: Any) -> None:
        self.directory = directory
        self.work = directory / "work"
        self.work.mkdir(parents=True)
        self.command = [python, "-I", "-S", runner, "run", str(directory)]
        self.processes: list[subprocess.Popen[bytes]] = []
        self.spec = {
            "key": "42.1", "tag": f"tag of {directory}", "env": {"PATH": os.environ["PATH"]}, "cwd": str(self.work),
            "time_limit": None, "memory_limit": None, "stop": {"signal": "TERM", "grace": 5}, **spec,
        }  # fmt: skip
        (directory / "spec.json").write_text(json.dumps(self.spec))

    def begin(self, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, **options)
        self.processes.append(process)
        return process

    def run(self) -> dict[str, Any]:
        assert self.begin().wait(PATIENCE_S) == 0
        return self.record()

    def record(self) -> dict[str, Any]:
        """The exit record, waited for."""
        return dict(until(lambda: (status := self.status()) and status["state"] == "ended" and status))

    def status(self) -> dict[str, Any] | None:
        return self.document("status.json")

    def document(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.directory / name).read_text()))
        except (OSError, ValueError):
            return None

    def control(self, **wish: Any) -> None:
        draft = self.directory / "control.tmp"
        draft.write_text(json.dumps(wish))
        draft.rename(self.directory / "control.json")

    def text(self, name: str = "log") -> str:
        return (self.directory / name).read_text()

    def wait_for_text(self, text: str) -> None:
        """Until the log, which may not be there yet, says that and no more."""
        until(lambda: (self.directory / "log").exists() and self.text() == text)

    def samples(self) -> list[dict[str, Any]]:
        return self.lines("usage.jsonl")

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Of a file that grows: those that are complete."""
        path = self.directory / name
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def wait_for(self, name: str) -> str:
        """The text of a file that the job writes in its working directory, with a line end when it is complete."""
        path = self.work / name
        return str(until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text())).strip()

    def pids(self, *names: str) -> list[int]:
        return [int(self.wait_for(name)) for name in names]

    def clean_up(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        leftovers.sweep(str(self.directory))
        shutil.rmtree(self.directory, ignore_errors=True)


NewAttempt = Callable[..., Attempt]


def signals(line: str) -> set[int]:
    """Of a mask in /proc/PID/status, less the two that the C library keeps for itself: no program can reset those."""
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1} - {32, 33}


def until(condition: Any, timeout_s: float = PATIENCE_S) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return answer


def given_time(
    seconds: int, play: Callable[[int], Attempt], is_enough: Callable[[Attempt], object]
) -> tuple[Attempt, int]:
    """An attempt that had the time for what it does when it is warned, and that time. A busy machine may keep a process
    for longer than there is between its warning and its end: then the same is played again, with more of it."""
    for enough in (seconds, 3 * seconds, 8 * seconds):
        attempt = play(enough)
        if is_enough(attempt):
            break
    return attempt, enough


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def waits_for_fuse(pid: int) -> bool:
    """One of its threads does."""
    for path in Path(f"/proc/{pid}/task").glob("*/wchan"):
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            if "fuse" in path.read_text():
                return True
    return False


def python_job(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def shell_job(code: str) -> list[str]:
    return ["/bin/sh", "-c", code]


# A daemon as they come: twice forked, a session of its own, deaf to SIGTERM, without the environment it was given.
DAEMON = """
import os, signal, time, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
between = os.fork()
if between == 0:
    os.setsid()
    if os.fork() == 0:
        with open("daemon", "w") as file:
            print(os.getpid(), file=file)
        time.sleep(600)
    os._exit(0)
os.waitpid(between, 0)
while not os.path.exists("daemon"):
    time.sleep(0.01)
"""
