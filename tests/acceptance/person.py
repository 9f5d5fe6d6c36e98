"""Somebody on a login node of a lab's cluster, who carries out what a page says."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess

from tests.acceptance.cron_yard import install
from tests.labs.cluster import Cluster

TRAIN = "import os; print('trained in', os.environ.get('MLP_DATA_DIR', 'memory'))\n"


class Person:
    """A normal user with an own home on the shared disk, and a shell in it."""

    def __init__(self, lab: Cluster, *others: Cluster) -> None:
        self.lab, self.home = lab, lab.directory / f"person-{secrets.token_hex(4)}"
        self.place = self.home / ".local" / "share" / "runyard"
        programs = {"runyard": f'exec {install(lab)} -P -m runyard "$@"', "module": ":"}
        for directory in (self.home / "bin", self.home / "scratch", self.place):
            directory.mkdir(parents=True, mode=0o700)
        for name, line in programs.items():
            (self.home / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
            (self.home / "bin" / name).chmod(0o755)
        (self.home / "train.py").write_text(TRAIN)
        for path in (self.home, *self.home.rglob("*"), *self.home.rglob(".*")):
            lab.user.own(path)
        searched = [
            str(self.home / "bin"),
            *(each.env["PATH"] for each in others if "PATH" in each.env),
            lab.user.env()["PATH"],
        ]
        own = {"HOME": str(self.home), "RUNYARD_PORT": "0", "PATH": os.pathsep.join(searched)}
        self.env = {**lab.user.env(), **{k: v for each in (lab, *others) for k, v in each.env.items()}, **own}

    def follow(self, commands: list[str], *words: tuple[str, str], input: str = "") -> str:
        """Carry them out, with what the labs call otherwise in place of the page's words."""
        script = "\n".join(commands)
        for written, meant in (("/scratch/$USER", str(self.home / "scratch")), *words):
            script = script.replace(written, meant)
        done = self._run(["sh", "-ec", script], input)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run(["runyard", *words], "")

    def end(self, run: int) -> str:
        self.cli("wait", str(run), "--timeout", "4m")
        shown = json.loads(self.cli("show", str(run), "--json").stdout)
        assert shown["state"] == "succeeded", f"{shown['reason']}: {shown['detail']}"
        return self.cli("logs", str(run)).stdout

    def cron(self, line: str) -> None:
        done = self._run(["env", "-i", "/bin/sh", "-c", line.strip().removeprefix("* * * * * ")], "")
        assert done.returncode == 0, done.stderr

    def leave(self) -> None:
        self.cli("down")
        shutil.rmtree(self.home, ignore_errors=True)

    def _run(self, command: list[str], input: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.env, cwd=self.home, input=input, capture_output=True, text=True, timeout=400, check=False,
            **self.lab.user.popen_options(),
        )  # fmt: skip
