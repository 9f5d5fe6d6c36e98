"""A yard that a normal user runs on a login node of a lab's cluster, with the cluster as its site."""

from __future__ import annotations

import abc
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import runyard
from tests.acceptance.witness import until
from tests.labs import commands
from tests.labs.accounts import NODE_PYTHON
from tests.labs.cluster import Cluster

START_S = 180.0
TELL_S = 180.0  # an ending is told within this time of the scheduler knowing it: a minute, and more on a busy machine
SITE = "cedar"


class OnCluster(abc.ABC):
    """What a person does on a login node, whoever drives the yard."""

    lab: Cluster
    home: Path

    @abc.abstractmethod
    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`runyard WORDS…`, as the normal user."""

    def hand_in(self, *specs: dict[str, Any]) -> list[int]:
        """Runs for the cluster, all at once; their numbers."""
        path = self.home / "runs.json"
        path.write_text(json.dumps({"runs": [{"site": SITE, **spec} for spec in specs]}))
        path.chmod(0o644)
        answer = self.cli("submit", "--quiet", "-f", str(path))
        assert answer.returncode == 0, answer.stderr
        return [int(word) for word in answer.stdout.split()]

    def edit_site(self, *words: str) -> None:
        answer = self.cli("site", "edit", SITE, *words)
        assert answer.returncode == 0, answer.stderr

    def show(self, run_id: int) -> dict[str, Any]:
        return dict(json.loads(self.cli("show", str(run_id), "--json").stdout))

    def batch_directory(self, native: str) -> Path:
        """Where the batch lies that was last accepted under this id."""
        notes = (self.home / "site" / "batches").glob("*/accepted")
        found = [note for note in notes if json.loads(note.read_text().splitlines()[-1])["id"] == native]
        return max(found, key=lambda note: note.stat().st_mtime).parent


class ClusterYard(OnCluster):
    def __init__(self, lab: Cluster, kind: str, *options: str) -> None:
        self.lab = lab
        self.home = lab.directory / f"yard-{secrets.token_hex(4)}"
        self.home.mkdir(mode=0o700)
        lab.user.own(self.home)
        self._site = ["--kind", kind, "--dir", str(self.home / "site"), "--python", NODE_PYTHON, *options]
        self._process: commands.Started | None = None

    @property
    def env(self) -> dict[str, str]:
        own = {"RUNYARD_HOME": str(self.home), "RUNYARD_PORT": "0", "PYTHONUNBUFFERED": "1"}
        return {**self.lab.user.runyard()[1], **self.lab.env, **own}

    def start(self) -> None:
        with (self.home / "up.log").open("ab") as log:
            self._process = commands.start(
                ["up"], env=self.env, cwd=self.home, log=log, interpreter=self.lab.user.interpreter()
            )
        deadline = time.monotonic() + START_S
        while self.cli("status").returncode:
            assert self._process.poll() is None and time.monotonic() < deadline, (self.home / "up.log").read_text()
            time.sleep(0.1)

    def add_site(self, *, eager: bool = True) -> None:
        """`eager` looks at the queue every second, for tests that are not about how often it is looked at."""
        pace = ["--option", "poll_interval=1"] if eager else []
        answer = self.cli("site", "add", SITE, *self._site, *pace)
        assert answer.returncode == 0, answer.stderr

    def kill9(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(120)
        for pid in _with_home(self.home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)  # what still runs on the cluster may write there

    def cli(self, *words: str, timeout: float = 240, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        interpreter = self.lab.user.interpreter()
        return commands.run(words, env=self.env, cwd=cwd or self.home, timeout=timeout, interpreter=interpreter)

    def show(self, run_id: int) -> dict[str, Any]:
        """By the API: tests look often, and each command would be a process."""
        with runyard.Client(home=self.home, start=False) as client:
            return client.run(run_id).data

    def submit(self, *words: str) -> int:
        answer = self.cli("submit", "--quiet", "--site", SITE, *words)
        assert answer.returncode == 0, answer.stderr
        return int(answer.stdout)

    def ended(self, run_id: int, timeout: float = 240) -> dict[str, Any]:
        self.cli("wait", str(run_id), "--timeout", f"{timeout:.0f}s", timeout=timeout + 120)
        shown = self.show(run_id)
        assert shown["ended_at"], f"{shown}\n{(self.home / 'up.log').read_text()}"
        return shown

    def started(self, run_id: int) -> str:
        """Its native id, once its runner has begun. One that has little to do may be over before anybody looks."""
        until(lambda: self.show(run_id)["state"] not in ("queued", "starting"), timeout=240, what=f"run {run_id} runs")
        native = self.show(run_id)["attempts"][-1]["native_id"]
        assert native, self.show(run_id)
        return str(native)

    def told(self, run_id: int, known: Callable[[], object]) -> dict[str, Any]:
        """How it ended. `known`: whether the scheduler knows it; the yard must soon after. When it did, it says itself:
        who asks it takes a while on a busy machine, and a further attempt may come before the run has ended."""
        until(known, timeout=300, what=f"the scheduler knows the end of run {run_id}")
        known_at = time.time()
        shown = self.ended(run_id)
        told_at = datetime.fromisoformat(shown["attempts"][0]["ended_at"]).timestamp()
        assert told_at - known_at <= TELL_S, shown
        return shown

    def queued(self, run_id: int) -> str:
        """Its native id, once the yard tells what the scheduler says of its waiting."""
        until(lambda: self._natives(run_id), what=f"the native id of run {run_id}")
        return self._natives(run_id)[-1]

    def _natives(self, run_id: int) -> list[str]:
        return [attempt["native_id"] for attempt in self.show(run_id)["attempts"] if attempt["native_id"]]

    def log(self, run_id: int) -> str:
        return self.cli("logs", str(run_id)).stdout


def _with_home(home: Path) -> Iterator[int]:
    mark = os.fsencode(home)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{name}/cmdline").read_bytes():
                yield int(name)
