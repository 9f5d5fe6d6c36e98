"""Daemons of a lab under a supervisor of their own, which outlives neither the test run nor `close`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.labs import supervise

_PATIENCE_S = 90
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""What a daemon sees when nobody says more: jobs inherit it, so nothing of the test run may be in it."""


class LabError(RuntimeError):
    """A lab does not do what its test needs."""


class Daemons:
    """`inside` puts the supervisor itself somewhere else, `unshare …` for instance; `leftovers` go at the end."""

    def __init__(self, logs: Path, *, inside: Sequence[str] = (), leftovers: Sequence[Path] = ()) -> None:
        self.logs = logs
        self._asking = threading.Lock()  # tests break things from threads of the code under test, too
        command = [*inside, sys.executable, "-I", "-S", supervise.__file__, *map(str, leftovers)]
        with (logs / "supervisor.out").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd="/", env=ENV,
                start_new_session=True,  # a signal to the test run's whole group must not reach it
            )  # fmt: skip
        if "ready" not in self._read():
            raise LabError(f"{' '.join(command)} does not start")

    @property
    def pid(self) -> int:
        """The outermost process: `inside`, or the supervisor where there is none."""
        return self._process.pid

    def spawn(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
        """Start a daemon that stays in the foreground; what it says goes to `<name>.out` among the logs."""
        log = str(self.logs / f"{name}.out")
        answer = self._ask("spawn", name=name, command=list(command), env={**ENV, **(env or {})}, log=log)
        return int(answer["pid"])

    def run(self, *command: str) -> str:
        """Run a short command where the daemons are."""
        return str(self._ask("run", command=list(command))["output"])

    def kill(self, name: str) -> None:
        if not self._signal(name, signal.SIGKILL, _PATIENCE_S):
            raise LabError(f"{name} is still there {_PATIENCE_S} s after its SIGKILL")

    def stop(self, name: str, wait_s: float = _PATIENCE_S) -> None:
        """SIGTERM, and SIGKILL for what does not listen."""
        if not self._signal(name, signal.SIGTERM, wait_s):
            self.kill(name)

    def pause(self, name: str) -> None:
        """The daemon hangs: its connections stay open and nothing answers. `resume` ends it."""
        self._signal(name, signal.SIGSTOP, 0)

    def resume(self, name: str) -> None:
        self._signal(name, signal.SIGCONT, 0)

    def pids(self) -> dict[str, int]:
        """The daemons that live; their job processes are not among them."""
        return dict(self._ask("alive")["pids"])

    def cpu_seconds(self) -> dict[str, float]:
        """Used so far by each daemon and the children it waited for; and as `jobs` by all others that have ended, which
        come back to the supervisor."""
        ended = psutil.Process(self.pid).cpu_times()
        used = {name: sum(psutil.Process(pid).cpu_times()[:4]) for name, pid in self.pids().items()}
        return {"jobs": ended.children_user + ended.children_system, **used}

    def close(self) -> None:
        """End them all. A supervisor that was killed before is no error."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(3 * _PATIENCE_S)
        self._process.stdout.close()

    def _signal(self, name: str, number: int, wait_s: float) -> bool:
        return bool(self._ask("signal", name=name, number=number, wait_s=wait_s)["gone"])

    def _ask(self, what: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        with self._asking:
            self._process.stdin.write(json.dumps({"do": what, **fields}).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read()
        if "error" in answer:
            raise LabError(answer["error"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LabError(f"the supervisor of {self.logs} is gone")
        return dict(json.loads(line))
