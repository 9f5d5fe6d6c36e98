"""`runyard rerun` and `runyard diff`, against a real yard."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.component("git")

TRAIN = """\
import os, pathlib, random, sys
random.seed(int(os.environ["RUNYARD_SEED"]))
result = random.random() * float(sys.argv[1])
pathlib.Path(os.environ["OUTPUT_DIR"], "result.txt").write_text(str(result))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return folder


def train(submit: Any, cli: Any, project: Path, *words: str) -> int:
    number = submit("--seed", "5", "-p", "factor=2", *words, "--", "python3", "train.py", "{factor}", cwd=project)
    cli("wait", str(number))
    return int(number)


def test_the_same_run_once_more(submit, cli, document, project: Path, tmp_path: Path) -> None:
    first = train(submit, cli, project)
    (project / "train.py").write_text("raise SystemExit('edited since')")
    done = cli("rerun", str(first), "--wait", "-q", cwd=tmp_path)
    again = int(done.stdout)
    assert "no snapshot" not in done.stderr
    assert again != first
    assert f"copy of run {first}" in " ".join(cli("show", str(again)).stdout.split())
    found = document("diff", str(first), str(again))
    assert found["same"] == {"asked": True, "results": True}, found
    said = cli("diff", str(first), str(again)).stdout.splitlines()
    assert said[0] == f"runs {first} and {again}: same inputs, same results"


def test_code_that_nobody_kept_is_told(submit, cli, document, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    first = train(submit, cli, folder)
    (folder / "train.py").write_text(TRAIN + "print('edited since')")
    done = cli("rerun", str(first), "--wait", "-q", cwd=tmp_path)
    again = int(done.stdout)
    assert f"run {again}: it has no snapshot of its code: {folder} is used as it is now" in done.stderr
    assert f"run {again}: uses the packages currently installed at the site (--python-env sync" in done.stderr
    found = document("diff", str(first), str(again))
    assert found["same"]["asked"] is None
    assert found["notes"][0].startswith(f"runs {first} and {again} have no snapshot of the code")
    assert "as far as is known" in cli("diff", str(first), str(again)).stdout
    made = document("rerun", f"{first}-{again}")
    assert [len(run["notes"]) for run in made] == [2, 2]


def test_another_value_gives_another_result(submit, cli, document, project: Path) -> None:
    first = train(submit, cli, project)
    again = document("rerun", str(first), "--set", "factor=3", "--wait")
    assert (again["params"], again["rerun_of"]) == ({"factor": 3}, first)
    found = document("diff", str(first), str(again["id"]))
    assert found["same"] == {"asked": False, "results": False}
    differences = {one["name"]: one["differences"] for one in found["sections"]}
    assert differences["parameters"] == [{"name": "factor", "before": 2, "after": 3}]
    assert [item["name"] for item in differences["outputs"]] == ["result.txt"]
    assert "different parameters, different results" in cli("diff", str(first), str(again["id"])).stdout


def test_edits_are_shown(submit, cli, document, project: Path) -> None:
    first = train(submit, cli, project)
    (project / "train.py").write_text(TRAIN.replace("random.random()", "random.random() + 1"))
    (project / "notes.txt").write_text("new\n")
    second = train(submit, cli, project, "-e", "API_KEY=hidden", "-e", "MODE=fast")
    shown = cli("diff", str(first), str(second)).stdout
    assert "+result = random.random() + 1 * float(sys.argv[1])" in shown
    assert "-result = random.random() * float(sys.argv[1])" in shown
    assert "added    notes.txt  +1 -0" in shown
    assert "MODE" in shown and "API_KEY" in shown and "hidden" not in shown
    assert "@@" not in cli("diff", str(first), str(second), "--no-lines").stdout
    assert [change["path"] for change in document("diff", str(first), str(second))["files"]] == [
        "notes.txt",
        "train.py",
    ]


def test_several_at_once(submit, cli, document, project: Path) -> None:
    ids = [train(submit, cli, project) for _ in range(2)]
    made = document("rerun", *map(str, ids), "--seed", "6", "--wait")
    assert [run["rerun_of"] for run in made] == ids
    assert {run["spec"]["seed"] for run in made} == {6}


def test_from_python(submit, cli, shared, project: Path) -> None:
    run = shared.client().run(train(submit, cli, project))
    again = run.rerun({"factor": 4}, wait=True)
    assert (again.state, again.rerun_of, again.params) == ("succeeded", run.id, {"factor": 4})
    assert "packages" in again.notes[0]
    assert run.diff(again)["same"] == {"asked": False, "results": False}


def test_what_is_refused(submit, cli, refused, project: Path) -> None:
    first = train(submit, cli, project)
    assert "did you mean 'factor'?" in refused("rerun", str(first), "--set", "facto=3", code=2)
    assert "write it like lr=0.2" in refused("rerun", str(first), "--set", "factor", code=2)
    assert "there is no run 987654" in refused("rerun", "987654", code=1)
    assert "no run was named" in refused("rerun", code=2)
    submit("--", "true")
    assert "--follow needs exactly one run" in refused("rerun", str(first), "last", "--follow", code=2)
    assert "diff needs two runs, not 1" in refused("diff", str(first), code=2)
