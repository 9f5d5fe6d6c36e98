"""A real yard for a test: `runyard up` as a process of its own, in a home of its own, on any free port."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runyard
from runyard import errors
from runyard.client import find_yard
from tests.labs import commands
from tests.labs.supervise import remove

START_TIMEOUT_S = 120
END_TIMEOUT_S = 120


class Yard:
    """One home and the yard in it. `kill9` and `start` may be called again and again."""

    def __init__(self, *, below: Path | None = None, **settings: Any) -> None:
        # A short name, because the path of a Unix socket has about 100 characters.
        self.home = Path(tempfile.mkdtemp(prefix="ry-", dir=below))
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}
        self.env |= {"RUNYARD_HOME": str(self.home), "RUNYARD_PORT": "0"}
        self.env |= {f"RUNYARD_{name.upper()}": str(value) for name, value in settings.items()}
        self._process: commands.Started | None = None
        self._clients: list[runyard.Client] = []

    @property
    def pid(self) -> int:
        assert self._process is not None, "the yard is not up"
        return self._process.pid

    @property
    def url(self) -> str:
        address = find_yard.read_address(self.home)
        assert address is not None, "the yard is not up"
        return address.url

    @property
    def token(self) -> str:
        return find_yard.read_token(self.home)

    @property
    def serving(self) -> tuple[str, ...]:
        """The command that is the yard, and runs until it is stopped."""
        return ("up",)

    @property
    def runs(self) -> Path:
        """The directories of the runs that are executed here."""
        return self.home / "sites" / "local" / "runs"

    @property
    def log(self) -> str:
        """What the yard itself wrote."""
        return (self.home / "up.log").read_text(errors="replace")

    def client(self) -> runyard.Client:
        """A client of its own; all are closed with the yard's removal."""
        self._clients.append(runyard.Client(home=self.home, start=False))
        return self._clients[-1]

    def start(self, *program: str) -> Yard:
        """`program`: what Python runs instead of runyard itself."""
        with (self.home / "up.log").open("ab") as log:
            if program:
                self._process = subprocess.Popen(
                    [sys.executable, "-X", "faulthandler", *program, "up"],
                    env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip
            else:
                self._process = commands.start(self.serving, env=self.env, cwd=self.home, log=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the yard does not come up:\n{self.log}")
            time.sleep(0.02)
        return self

    def kill9(self) -> None:
        """What a power button does to the yard; runs, runners and the zygote stay."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> Yard:
        self.stop()
        return self.start()

    def cli(self, *words: str, timeout: float = 180, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `runyard WORDS…` against this home."""
        return commands.run(words, **{"env": self.env, "timeout": timeout, **options})

    @staticmethod
    def command(*words: str) -> list[str]:
        return [sys.executable, "-m", "runyard", *words]

    def processes(self) -> list[int]:
        """Everything alive that carries this home's path in its arguments or its environment."""
        return processes_of(self.home)

    def remove(self) -> None:
        """End all of it, the pre-warmed process and abandoned runs included, and take the home away."""
        for client in self._clients:
            client.close()
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGTERM)
        end_processes_of(self.home)
        remove(self.home)

    def _answers(self) -> bool:
        address = find_yard.read_address(self.home)
        if address is None or address.pid != self.pid:
            return False
        with contextlib.suppress(errors.YardUnreachable), runyard.Client(home=self.home, start=False) as client:
            return bool(client.health())
        return False

    def _end(self, number: int) -> None:
        assert self._process is not None, "the yard is not up"
        self._process.send_signal(number)
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # it tells where each thread is
            self._process.wait(END_TIMEOUT_S)
            raise AssertionError(f"the yard did not end:\n{self.log}") from None


def processes_of(home: Path) -> list[int]:
    """Everything alive that carries this home's path in its arguments or its environment."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_of(pid, home)]


def end_processes_of(home: Path) -> None:
    """The pre-warmed process and abandoned runs included."""
    deadline = time.monotonic() + 60
    while (left := processes_of(home)) and time.monotonic() < deadline:
        for pid in left:
            _kill(pid)
        time.sleep(0.05)


def _is_of(pid: int, home: Path) -> bool:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return pid != os.getpid() and os.fsencode(home) in said


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def make_yard() -> Iterator[Callable[..., Yard]]:
    """`make_yard(cpus=2)` starts a yard with those settings; all of them are gone after the test."""
    made: list[Yard] = []

    def make(**settings: Any) -> Yard:
        made.append(Yard(**settings))
        return made[-1].start()

    yield make
    for yard in made:
        yard.remove()


@pytest.fixture
def yard(make_yard: Callable[..., Yard]) -> Yard:
    """A yard with two slots."""
    return make_yard(cpus=2)
