"""What a newcomer has not installed is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.labs.yard import Yard, end_processes_of

EXTRAS = ("pika", "psycopg")
OF_THE_SERVER = (
    "alembic", "anyio", "h11", "httptools", "mako", "psutil", "sqlalchemy", "starlette", "uvicorn", "uvloop",
)  # fmt: skip
OF_THE_COMMAND_LINE = ("click", "rich", "yaml")
BLOCK = """
import importlib.abc, sys

PACKAGES = sys.argv.pop(1).split(",")

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
CLIENT = """
import runyard

with runyard.Client() as client:
    run = client.submit(["sh", "-c", "echo from afar; echo model > $OUTPUT_DIR/model"], project="light").wait()
    print(run.state, run.logs().strip(), [output.path for output in run.outputs()])
"""
COMMAND = """
from runyard.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("missing", EXTRAS)
def test_a_yard_as_it_comes_needs_no_extra(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ImportError('no module named {missing}')\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "RUNYARD_HOME": str(tmp_path / "home"), "RUNYARD_PORT": "0"}

    def runyard(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runyard", *words]
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = runyard("submit", "--wait", "--", "true")
    runyard("down")
    end_processes_of(tmp_path / "home")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def elsewhere(shared: Yard, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has a yard's address and a token, and nothing else of it."""
    of_others = {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}
    here = {"RUNYARD_HOME": str(tmp_path / "home"), "RUNYARD_URL": shared.url, "RUNYARD_TOKEN": shared.token}
    return {**of_others, **here}


def without(packages: tuple[str, ...], environ: dict[str, str], program: str, *words: str) -> str:
    """What a program prints whose interpreter has none of these packages."""
    command = [sys.executable, "-c", BLOCK + program, ",".join(packages), *words]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_needs_nothing_of_the_server(elsewhere: dict[str, str]) -> None:
    said = without((*OF_THE_SERVER, *OF_THE_COMMAND_LINE), elsewhere, CLIENT)
    assert said == "succeeded from afar ['model']\n"


def test_commands_for_a_yard_elsewhere_need_nothing_of_the_server(elsewhere: dict[str, str]) -> None:
    assert without(OF_THE_SERVER, elsewhere, COMMAND, "submit", "--follow", "-q", "--", "echo", "here") == "here\n"
    assert "succeeded" in without(OF_THE_SERVER, elsewhere, COMMAND, "ls")


def test_what_is_blocked_is_blocked(elsewhere: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match="No module named 'sqlalchemy'"):
        without(OF_THE_SERVER, elsewhere, "import runyard.store.store")
