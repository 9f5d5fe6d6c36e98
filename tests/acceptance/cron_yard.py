"""A lab without a daemon anywhere: a home on a network file system, crontabs on its login nodes, and a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.cluster_yard import SITE, OnCluster
from tests.labs.accounts import NODE_PYTHON
from tests.labs.cluster import Cluster

# A machine to the eyes of runyard: a host name. root gives it, and leaves.
_AS = 'hostname "$1" && shift && exec setpriv "$@"'


def install(lab: Cluster, below: Path | None = None) -> Path:
    """An interpreter with runyard that needs no environment: on the cluster's shared disk, or where it is said."""
    command, env = lab.user.runyard()
    place = (below or lab.directory) / "venv"
    if not place.exists():
        subprocess.run([command[0], "-m", "venv", "--without-pip", str(place)], check=True, capture_output=True)
        (library,) = place.glob("lib/python*/site-packages")
        (library / "runyard.pth").write_text("\n".join(env["PYTHONPATH"].split(os.pathsep)) + "\n")
    return place / "bin" / "python"


def scheduler_options(lab: Cluster) -> list[str]:
    """What cron's commands need to find the scheduler: it is in no environment."""
    variables = {name: value for name, value in lab.env.items() if name != "PATH"}
    words = ["--option", f"client_env={shlex.join(f'{name}={value}' for name, value in variables.items())}"]
    if "PATH" in lab.env:
        program = shutil.which("qstat", path=lab.env["PATH"])
        assert program is not None
        words += ["--option", f"bin={os.path.dirname(program)}"]
    return words


@dataclass(frozen=True, kw_only=True)
class Handed:
    """Over to the scheduler: the native job, and the directory of the attempt."""

    native: str
    directory: Path

    @property
    def has_begun(self) -> bool:
        return (self.directory / "started" / "runner.json").exists()


class CronYard(OnCluster):
    def __init__(self, lab: Cluster, kind: str, *options: str, config: str = 'network_home = "yes"\n') -> None:
        self.lab, self.python = lab, install(lab)
        self.home = lab.directory / f"cron-{secrets.token_hex(4)}"
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(config)
        for path in (self.home, self.home / "config.toml"):
            lab.user.own(path)
        self._site = ["--kind", kind, "--dir", str(self.home / "site"), "--python", NODE_PYTHON, *options]
        self._site += scheduler_options(lab)

    def add_site(self, *, eager: bool = True) -> None:
        """`eager` looks at the queue every second, for tests that are not about how often it is looked at."""
        pace = ["--option", "poll_interval=1"] if eager else []
        answer = self.cli("site", "add", SITE, *self._site, *pace)
        assert answer.returncode == 0, answer.stderr

    def cli(self, *words: str, login: str = "", **options: str) -> subprocess.CompletedProcess[str]:
        env = self.lab.user.env({"RUNYARD_HOME": str(self.home), **options})
        return self._run([str(self.python), "-m", "runyard", *words], login, env)

    def tick(self, login: str = "", line: str = "") -> subprocess.CompletedProcess[str]:
        """The very line of the crontab, as cron would run it: without an environment."""
        line = line or self.crontab()
        return self._run(["env", "-i", "/bin/sh", "-c", line.removeprefix("* * * * * ")], login, {})

    def crontab(self, *words: str) -> str:
        answer = self.cli("check", "--crontab", *words)
        assert answer.stdout.startswith("* * * * * "), answer.stderr
        return answer.stdout.strip()

    def start(self, *words: str, login: str = "") -> subprocess.Popen[str]:
        command = self._at(login, [str(self.python), "-m", "runyard", *words])
        env = self.lab.user.env({"RUNYARD_HOME": str(self.home)})
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, cwd=self.home, stdout=pipe, stderr=pipe, text=True)

    def states(self) -> list[str]:
        return [row["state"] for row in self._ask("SELECT state FROM runs ORDER BY id")]

    def told(self) -> dict[int, dict[str, Any]]:
        """Runs whose first attempt is told to be over, as `show` has them in brief."""
        runs = {row["id"]: {**row, "attempts": []} for row in self._ask("SELECT id, state, reason FROM runs")}
        for attempt in self._ask("SELECT * FROM attempts ORDER BY run_id, number"):
            runs[attempt["run_id"]]["attempts"].append(attempt)
        return {run: shown for run, shown in runs.items() if shown["attempts"] and shown["attempts"][0]["outcome"]}

    def handed_over(self) -> dict[int, Handed]:
        """By run, of batches of one: as the site's files have them."""
        found = {}
        for note in (self.home / "site" / "batches").glob("*/accepted"):
            native = json.loads(note.read_text().splitlines()[-1])["id"]
            for directory in json.loads((note.parent / "manifest.json").read_text())["jobs"].values():
                found[int(Path(directory).parent.name)] = Handed(native=native, directory=Path(directory))
        return found

    def _ask(self, question: str) -> list[dict[str, Any]]:
        """Of the store itself; nothing of runyard runs for this, and so nothing is relayed by it."""
        place = f"file:{self.home / 'yard.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(place, uri=True, timeout=30)) as store:
            store.row_factory = sqlite3.Row
            return [dict(row) for row in store.execute(question)]

    def processes(self) -> list[int]:
        """Everything alive that names this home in its arguments or its environment."""
        return list(_naming(os.fsencode(self.home)))

    def remove(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)

    def _run(self, command: list[str], login: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._at(login, command), env={"PATH": os.environ["PATH"], **env}, cwd=self.home, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    def _at(self, login: str, command: list[str]) -> list[str]:
        user = ["--reuid", str(self.lab.user.uid), "--regid", str(self.lab.user.gid), "--clear-groups", "--"]
        if not login:
            return ["setpriv", *user, *command]
        return ["unshare", "--uts", "sh", "-c", _AS, "sh", login, *user, *command]


def _naming(mark: bytes) -> Iterator[int]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            said = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
            if mark in said and int(name) != os.getpid():
                yield int(name)
