"""The job scripts: as they are written, and as a shell understands them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.backends.batch import script

GOLDEN = Path(__file__).parent / "golden"
SHOW = "import sys; print(*sys.argv[1:])"


def rendered(template: str, directory: str = "/scratch/my site/batches/ry-1-1-7", python: str = "python3") -> str:
    return script.render(
        script.template(template),
        batch="ry-1-1-7",
        directory=directory,
        runner="/scratch/my site/runner-1",
        python=python,
    )


@pytest.mark.parametrize("name", ["slurm.sh", "gridengine.sh", "probe.sh"])
def test_the_very_script(name: str) -> None:
    assert rendered(name) == (GOLDEN / name).read_text()


@pytest.mark.parametrize(
    ("template", "variables", "arguments", "attempt"),
    [
        ("slurm.sh", {}, ["0"], "/runs/1/a1"),
        ("slurm.sh", {"SLURM_ARRAY_TASK_ID": "2"}, ["0"], "/runs/ü b/a1"),
        ("slurm.sh", {"SLURM_ARRAY_TASK_ID": "2"}, ["10"], "/runs/12/a3"),
        ("slurm.sh", {}, ["11"], "/runs/12/a3"),
        ("gridengine.sh", {"SGE_TASK_ID": "undefined"}, ["0"], "/runs/1/a1"),
        ("gridengine.sh", {"SGE_TASK_ID": "2"}, ["0"], "/runs/ü b/a1"),
        ("gridengine.sh", {}, ["11"], "/runs/12/a3"),
    ],
)
def test_a_task_finds_its_attempt(
    tmp_path: Path, template: str, variables: dict[str, str], arguments: list[str], attempt: str
) -> None:
    batch = tmp_path / "my batch"
    done = run(batch, template, variables, arguments)
    assert (done.returncode, done.stdout) == (
        0,
        f"-I -S /scratch/my site/runner-1 run {attempt} {tmp_path.parent}/relay.sh\n",
    )


def test_a_task_that_is_not_in_the_manifest_says_so(tmp_path: Path) -> None:
    done = run(tmp_path / "batch", "slurm.sh", {"SLURM_ARRAY_TASK_ID": "3"}, ["0"])
    assert done.returncode == 1
    assert "job 3 is not in" in done.stderr


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    done = run(tmp_path / "batch", "slurm.sh", {}, ["0"], python="/no/such/python")
    assert done.returncode == 127
    assert "has no interpreter /no/such/python" in done.stderr


def run(
    batch: Path, template: str, variables: dict[str, str], arguments: list[str], python: str = ""
) -> subprocess.CompletedProcess[str]:
    batch.mkdir(exist_ok=True)
    manifest = (
        '{"batch": "b", "names": ["b"], "jobs": {\n"1": "/runs/1/a1",\n"2": "/runs/ü b/a1",\n"12": "/runs/12/a3"\n}}\n'
    )
    (batch / "manifest.json").write_text(manifest)
    shown = batch / "python"
    shown.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(SHOW)} "$@"\n')
    shown.chmod(0o755)
    (batch / "job.sh").write_text(rendered(template, str(batch), python or str(shown)))
    env = {"PATH": os.environ["PATH"], **variables}
    command = ["sh", str(batch / "job.sh"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)
