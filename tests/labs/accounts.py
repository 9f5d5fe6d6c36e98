"""The normal Unix user who submits to the labs' clusters."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.labs import commands, daemons

NAME = "runyard-lab"
PATH = "/usr/local/bin:/usr/bin:/bin"
NODE_PYTHON = "/usr/bin/python3"
"""An interpreter that everybody can read, as compute nodes have one."""

_SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, kw_only=True)
class Account:
    name: str
    uid: int
    gid: int
    home: Path

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a fresh login has, and `extra`: schedulers copy a submitter's environment into jobs."""
        own = {"HOME": str(self.home), "USER": self.name, "LOGNAME": self.name, "SHELL": "/bin/bash"}
        return {"PATH": PATH, "LANG": "C.UTF-8", **own, **(extra or {})}

    def popen_options(self) -> dict[str, Any]:
        """For subprocess: become this account, when we are somebody else."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def run(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        settings = {"env": self.env(env), "cwd": "/", **self.popen_options(), **options}
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=False, **settings
        )

    def runyard(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """The command and the environment by which this account runs the working tree's runyard."""
        python, env = _python_for(self)
        return [python, "-m", "runyard", *words], self.env(env)

    def interpreter(self) -> commands.Interpreter:
        """What this account's commands are forked from."""
        return commands.Interpreter(python=_python_for(self)[0], user=self.uid, group=self.gid)

    def own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


@functools.cache
def submitter() -> Account:
    """As root an account made for this; anybody else submits as who they are."""
    if os.geteuid() != 0:
        return _account(pwd.getpwuid(os.geteuid()))
    deadline = time.monotonic() + 60
    while not (found := _look_up(NAME)):
        # `*` is a password that nobody has; the default `!` counts as locked, and sshd refuses a locked account.
        command = ["useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", NAME]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode and time.monotonic() > deadline:  # two workers at once: the second waits for the first
            raise daemons.LabError(f"useradd {NAME}: {made.stderr.strip()}")
        time.sleep(0.05)
    return _account(found)


@functools.cache
def _python_for(account: Account) -> tuple[str, dict[str, str]]:
    """Root's own interpreter may lie in root's home, where nobody else may look. The system's of the same version can
    use what is installed beside it."""
    libraries = {"PYTHONPATH": os.pathsep.join([str(_SOURCE), sysconfig.get_path("purelib")])}
    for choice in (sys.executable, NODE_PYTHON):
        with contextlib.suppress(OSError):
            if account.run([choice, "-c", "import runyard.cli.main"], env=libraries).returncode == 0:
                return choice, libraries
    raise daemons.LabError(f"{account.name} can read neither {sys.executable} nor what {NODE_PYTHON} would need")


def _look_up(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, home=Path(entry.pw_dir))
