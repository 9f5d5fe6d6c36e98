"""A yard that a normal user runs on a login node of a lab's cluster, with the cluster as its site."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.labs.accounts import NODE_PYTHON
from tests.labs.cluster import Cluster

START_S = 60.0
SITE = "cedar"


class ClusterYard:
    def __init__(self, lab: Cluster, kind: str, *options: str) -> None:
        self.lab = lab
        self.home = lab.directory / f"yard-{secrets.token_hex(4)}"
        self.home.mkdir(mode=0o700)
        lab.user.own(self.home)
        self._site = ["--kind", kind, "--dir", str(self.home / "site"), "--python", NODE_PYTHON, *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        own = {"RUNYARD_HOME": str(self.home), "RUNYARD_PORT": "0", "PYTHONUNBUFFERED": "1"}
        return {**self.lab.user.runyard()[1], **self.lab.env, **own}

    def start(self) -> None:
        with (self.home / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.lab.user.runyard("up")[0], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, **self.lab.user.popen_options(),
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while self.cli("status").returncode:
            assert self._process.poll() is None and time.monotonic() < deadline, (self.home / "up.log").read_text()
            time.sleep(0.1)

    def add_site(self) -> None:
        answer = self.cli("site", "add", SITE, *self._site, "--option", "poll_interval=1")
        assert answer.returncode == 0, answer.stderr

    def kill9(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)
        for pid in _with_home(self.home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)

    def cli(self, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.lab.user.runyard(*words)[0], env=self.env, cwd=self.home, capture_output=True, text=True,
            timeout=timeout, check=False, **self.lab.user.popen_options(),
        )  # fmt: skip

    def submit(self, *words: str) -> int:
        answer = self.cli("submit", "--quiet", "--site", SITE, *words)
        assert answer.returncode == 0, answer.stderr
        return int(answer.stdout)

    def show(self, run_id: int) -> dict[str, Any]:
        return dict(json.loads(self.cli("show", str(run_id), "--json").stdout))

    def ended(self, run_id: int, timeout: float = 120) -> dict[str, Any]:
        self.cli("wait", str(run_id), "--timeout", f"{timeout:.0f}s", timeout=timeout + 30)
        shown = self.show(run_id)
        assert shown["ended_at"], f"{shown}\n{(self.home / 'up.log').read_text()}"
        return shown

    def log(self, run_id: int) -> str:
        return self.cli("logs", str(run_id)).stdout


def _with_home(home: Path) -> Iterator[int]:
    mark = os.fsencode(home)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{name}/cmdline").read_bytes():
                yield int(name)
