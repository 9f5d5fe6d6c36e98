"""The trainer of examples/patchwise as a process, and the interpreters that have a Keras."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.labs.accounts import NODE_PYTHON, Account
from tests.labs.components import TRAINER_PYTHON
from tests.labs.daemons import LabError

PATCHWISE = Path(__file__).resolve().parents[2] / "examples" / "patchwise"
SMALL = ("--patch-height", "32", "--patch-width", "32", "--filters", "8", "--batch", "8", "--learning-rate", "0.003")
# One thread: two that wait for each other on a busy core are slower, and the order of their sums is not certain.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
WAIT_S = 280
# It strikes itself: whoever reads what it says may come late, and find it at its end.
_STRUCK = """
import builtins, os, runpy, sys
words, number, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
say = builtins.print
def print(*values, **options):
    say(*values, **options)
    if any(words in str(value) for value in values):
        os.kill(os.getpid(), number)
builtins.print = print
sys.argv[:] = sys.argv[3:]
sys.path[0] = os.path.dirname(program)
runpy.run_path(program, run_name="__main__")
"""


@dataclass(kw_only=True)
class Training:
    """A trainer that was started, and what it left."""

    output: Path
    process: subprocess.Popen[str]
    said: str = ""
    complained: str = ""
    peak: int = 0  # bytes of memory

    def end(self) -> Training:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        timer = threading.Timer(WAIT_S, self.process.kill)
        timer.start()
        self.said += self.process.stdout.read()
        self.complained = self.process.stderr.read()
        _, status, usage = os.wait4(self.process.pid, 0)  # tells of this one child how much it took at most
        timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process.stdout.close()
        self.process.stderr.close()
        self.peak = usage.ru_maxrss * 1024
        return self

    @property
    def code(self) -> int:
        return self.process.returncode

    def result(self) -> list[dict[str, Any]]:
        assert self.code == 0, self.said + self.complained
        models: list[dict[str, Any]] = json.loads((self.output / "result.json").read_text())["models"]
        return models

    def files(self) -> dict[str, bytes]:
        """What the training wrote, to compare it with another's."""
        self.result()
        return {path.name: path.read_bytes() for path in sorted(self.output.iterdir()) if path.is_file()}


def start(output: Path, page: Path, *flags: object, struck: tuple[str, int] | None = None, **env: str) -> Training:
    """`struck`: words, and the signal that it gets the moment it has said them."""
    program = ["-c", _STRUCK, *map(str, struck)] if struck else []
    process = subprocess.Popen(
        [TRAINER_PYTHON, *program, PATCHWISE / "trainer.py", page, *SMALL, *map(str, flags)],
        env={**ENVIRONMENT, "OUTPUT_DIR": str(output), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Training(output=output, process=process)


def run(*words: object, interpreter: Path = TRAINER_PYTHON, **env: str) -> str:
    """What a program of the example, or any other, prints."""
    done = subprocess.run(
        [interpreter, *map(str, words)],
        env={**ENVIRONMENT, "PYTHONPATH": str(PATCHWISE), **env},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def interpreter_for(account: Account) -> tuple[str, dict[str, str]]:
    """An interpreter that this account may use, and the environment in which it has the example's libraries."""
    (libraries,) = TRAINER_PYTHON.parents[1].glob("lib/python*/site-packages")
    for choice, env in ((str(TRAINER_PYTHON), {}), (NODE_PYTHON, {"PYTHONPATH": str(libraries)})):
        with contextlib.suppress(OSError):
            if account.run([choice, "-c", "import torch"], env=env, timeout=WAIT_S).returncode == 0:
                return choice, env
    raise LabError(f"{account.name} can read neither {TRAINER_PYTHON} nor what {NODE_PYTHON} would need")


def draw_page(directory: Path, *, seed: int = 1, side: int = 400, named: bool = False) -> Path:
    size = ("--height", side, "--width", side, "--seed", seed)
    run(PATCHWISE / "make_page.py", directory, *size, *(["--named"] if named else []))
    return directory


def classify(page: Path, models: Path) -> dict[str, Any]:
    score: dict[str, Any] = json.loads(run(PATCHWISE / "classify.py", page, models))
    return score
