"""`make lab-slurm` and its kin: a lab for a person, who reads how to use and to stop it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.labs.processes import processes_with
from tests.labs.waiting import until

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).resolve().parents[3]
ASK = {
    "slurm": "sinfo -h -o %D",
    "gridengine": "qhost | grep -c lx-",
    "rabbitmq": f"{sys.executable} -c 'import os, pika; "
    'print(pika.BlockingConnection(pika.URLParameters(os.environ["RUNYARD_BROKER"])).is_open)\'',
}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        pytest.param("slurm", "3", marks=pytest.mark.component("slurm")),
        pytest.param("gridengine", "2", marks=pytest.mark.component("gridengine", "root")),
        pytest.param("rabbitmq", "True", marks=pytest.mark.component("rabbitmq")),
    ],
)
def test_it_says_how_to_use_it_and_how_to_stop_it(kind: str, answer: str) -> None:
    command = [sys.executable, "-m", "tests.labs", kind]
    page = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120).stdout
    commands = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    exports = [line for line in commands if line.startswith("export ")]
    assert _shell("\n".join([*exports, ASK[kind]])) == answer
    root = page.split(" is running in ")[1].split(".\n")[0]
    assert Path(root).is_dir()
    _shell(commands[-1])
    until(lambda: not Path(root).exists(), f"{root} gone")
    until(lambda: not processes_with(root), f"every process of {root} gone")


def _shell(text: str) -> str:
    env = {"PATH": os.environ["PATH"]}
    return subprocess.run(["sh", "-ec", text], env=env, capture_output=True, text=True, check=True).stdout.strip()
