"""The `runyard` that runs find where it is not installed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import runyard
from runyard import runner
from tests.labs import components
from tests.labs.pythons import OTHER_PYTHONS
from tests.unit.job.conftest import Place

SOURCES = sorted((Path(runyard.__file__).parent / "job").glob("*.py"))
CODE = "from runyard import job; import runyard; job.log(a=1); print(runyard.__file__)"


def test_it_works_in_a_python_without_runyard(place: Place, packages: str) -> None:
    said, complained = place.run(CODE, "-S", PYTHONPATH=packages)
    assert (said, complained) == (f"{packages}/runyard/__init__.py\n", "")
    assert place.logged() == [{"a": 1.0}]


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_it_works_in_an_old_python(place: Place, packages: str, version: str) -> None:
    code = """
import os, signal
from runyard import job
saved = []
with job.checkpointing(lambda directory: saved.append(directory.name)) as ckpt:
    print(job.should_stop(), job.params(), job.seed(), job.index(), job.outputs().name, ckpt.resume_from)
    job.log(step=1, loss=0.5)
    job.summary(acc=1, name="x")
    os.kill(os.getpid(), signal.SIGUSR1)
    print(job.should_stop(), saved)
"""
    done = subprocess.run(
        [str(components.python(version)), "-c", code], cwd=place.directory, capture_output=True, text=True, timeout=120,
        env={**place.env, **place.inside, "PYTHONPATH": packages}, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False {} None 1 out None\nTrue ['kept']\n", "")
    assert [line.get("m") or line["summary"] for line in place.lines()] == [{"loss": 0.5}, {"acc": 1.0, "name": "x"}]


def test_a_runyard_that_is_installed_is_the_one(place: Place, packages: str) -> None:
    said, complained = place.run(CODE + "; print(runyard.Client.__name__)", PYTHONPATH=packages)
    assert (said, complained) == (f"{runyard.__file__}\nClient\n", "")
    assert place.logged() == [{"a": 1.0}]


def test_a_runyard_that_cannot_be_imported_is_not(place: Place, packages: str, tmp_path: Path) -> None:
    """As one for a newer Python is."""
    broken = tmp_path / "newer" / "runyard"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("match this: that")
    (tmp_path / "space" / "runyard").mkdir(parents=True)
    path = os.pathsep.join([packages, str(tmp_path / "space"), str(broken.parent)])
    assert place.run(CODE, "-S", PYTHONPATH=path)[0] == f"{packages}/runyard/__init__.py\n"


def test_functions_can_be_called_there(place: Place, packages: str) -> None:
    (place.directory / "train.py").write_text("def train(lr): return {'loss': lr * 2}")
    (place.directory / "p.json").write_text('{"lr": 0.5}')
    command = [sys.executable, "-S", "-m", "runyard.job.call", "train.py:train"]
    env = {**place.env, **place.inside, "PYTHONPATH": packages, "RUNYARD_PARAMS": str(place.directory / "p.json")}
    subprocess.run(command, cwd=place.directory, env=env, check=True, timeout=120)
    assert (place.directory / "out" / "result.json").read_text() == '{\n "loss": 1.0\n}\n'


def test_a_copy_has_what_a_run_may_import() -> None:
    carried = {path for path in runner.files() if path.startswith(runner.PACKAGES)}
    assert carried == {f"{runner.PACKAGES}/runyard/__init__.py"} | {
        f"{runner.PACKAGES}/runyard/job/{path.name}" for path in SOURCES if path.name != "standalone.py"
    }


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_an_old_python_can_read_it(source: Path) -> None:
    ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 6))
