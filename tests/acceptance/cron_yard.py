"""A lab without a daemon anywhere: a home on a network file system, crontabs on its login nodes, and a cluster."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.cluster_yard import SITE
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


class CronYard:
    def __init__(self, lab: Cluster, kind: str, *options: str, config: str = 'network_home = "yes"\n') -> None:
        self.lab, self.python = lab, install(lab)
        self.home = lab.directory / f"cron-{secrets.token_hex(4)}"
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(config)
        for path in (self.home, self.home / "config.toml"):
            lab.user.own(path)
        self._site = ["--kind", kind, "--dir", str(self.home / "site"), "--python", NODE_PYTHON, *options]
        self._site += [*scheduler_options(lab), "--option", "poll_interval=1"]

    def add_site(self) -> None:
        answer = self.cli("site", "add", SITE, *self._site)
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
        """As the store has them; nothing of runyard runs for this, and so nothing is relayed by it."""
        with contextlib.closing(
            sqlite3.connect(f"file:{self.home / 'yard.db'}?mode=ro", uri=True, timeout=30)
        ) as store:
            return [state for (state,) in store.execute("SELECT state FROM runs ORDER BY id")]

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
