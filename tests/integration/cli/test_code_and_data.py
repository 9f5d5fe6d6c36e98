"""`runyard submit` with code and data, against a real yard."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.component("git")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a commit, something new, something ignored, and data."""
    folder = tmp_path / "project"
    (folder / "corpora").mkdir(parents=True)
    for name, text in {
        "train.py": "print('lr', open('lib.txt').read(), open('corpora/a.txt').read())\n", "lib.txt": "0.1",
        ".gitignore": "*.ckpt\ncorpora\n", "old.ckpt": "x" * 1000, "corpora/a.txt": "words",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@lab.example"]
    for words in (
        ["init", "-q", "-b", "main"],
        ["remote", "add", "origin", "https://ada:secret@host.example/nets.git"],
        ["add", "."],
        [*identity, "commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "lib.txt").write_text("0.2")
    return folder


def test_a_checkout_is_brought_along_and_shown(cli, submit, document, project: Path) -> None:
    number = submit("--data", "corpora", "--", "python", "train.py", cwd=project)
    run = document("show", str(number))
    assert run["spec"]["code"]["files"] == 3
    assert "cwd" not in run["spec"]
    shown = cli("show", str(number)).stdout
    assert "of main, changed: 3 files" in shown
    assert "https://host.example/nets.git" in shown
    assert "secret" not in json.dumps(run) + shown
    assert "corpora" in shown


def test_it_runs_what_was_there_at_the_submit(cli, submit, project: Path) -> None:
    """Held back until the folder has changed."""
    first = submit("--", "sh", "-c", f"while [ ! -e {project}/go ]; do sleep 0.1; done", cwd=project)
    number = submit("--after", str(first), "--data", "corpora", "--", "python3", "train.py", cwd=project)
    (project / "lib.txt").write_text("0.3")
    (project / "corpora/a.txt").write_text("other words")
    (project / "go").touch()
    cli("wait", str(number))
    assert cli("logs", str(number)).stdout == "lr 0.2 words\n"


def test_a_retry_uses_the_same_snapshot(cli, submit, document, project: Path) -> None:
    number = submit("--", "python", "nowhere.py", cwd=project)
    before = document("show", str(number))["spec"]["code"]
    cli("wait", str(number), code=2)
    (project / "lib.txt").write_text("0.3")
    cli("retry", str(number), cwd=project)
    assert document("show", str(number))["spec"]["code"] == before


def test_a_dry_run_says_what_would_be_sent(cli, document, project: Path) -> None:
    said = cli("submit", "--dry-run", "--data", "corpora", "--", "python", "train.py", cwd=project).stdout
    assert "its copy of the code" in said
    assert "3 files" in said
    assert "train.py (" in said
    plan = document("submit", "--dry-run", "-f", _file(project, {"command": "true"}), cwd=project)
    assert plan["sent"][0]["files"] == 4  # the file itself is new


def _file(folder: Path, spec: dict[str, Any]) -> str:
    path = folder / "run.json"
    path.write_text(json.dumps(spec))
    return str(path)


def test_a_file_names_folders_from_where_it_is(submit, document, project: Path, tmp_path: Path) -> None:
    path = project / "run.yaml"
    path.write_text("command: [python, train.py]\ncode: [train.py, lib.txt]\ndata: [corpora, big=/scratch/big]\n")
    spec = document("show", str(submit("-f", str(path), cwd=tmp_path)))["spec"]
    assert spec["code"]["files"] == 2
    assert [item["to"] for item in spec["data"]] == ["corpora", "big"]


def test_no_code_runs_in_this_very_folder(cli, submit, document, project: Path) -> None:
    number = submit("--no-code", "--", "true", cwd=project)
    spec = document("show", str(number))["spec"]
    assert (spec.get("code"), spec["cwd"]) == (None, str(project))


def test_old_scripts_bring_no_code(cli, document, project: Path) -> None:
    (project / "job.sh").write_text("#!/bin/sh\ntrue\n")
    cli("sbatch", "job.sh", cwd=project)
    spec = document("show", "last")["spec"]
    assert (spec.get("code"), spec["cwd"]) == (None, str(project))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--code", ".."), "is outside of the project"),
        (("--code", "nowhere"), "there is no nowhere"),
        (("--data", "nowhere"), "there is no folder"),
        (("--data", "train.py"), "there is no folder"),
        (("--code", ".", "--no-code"), "exclude each other"),
    ],
)
def test_bad_words(refused, document, project: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("submit", *words, "--", "true", code=2, cwd=project)


def test_what_cannot_be_sent_submits_nothing(refused, cli, project: Path) -> None:
    before = cli("ls", "-q").stdout
    (project / "way").symlink_to("/etc/passwd")
    assert "the link 'way' leads outside" in refused("submit", "--", "true", code=2, cwd=project)
    (project / "way").unlink()
    (project / "two\nlines").touch()
    assert "line break" in refused("submit", "--", "true", code=2, cwd=project)
    (project / "two\nlines").unlink()
    os.mkfifo(project / "corpora/pipe")
    assert "is a named pipe" in refused("submit", "--data", "corpora", "--", "true", code=2, cwd=project)
    assert cli("ls", "-q").stdout == before


def test_a_recipe_brings_its_folder_along(cli, document, project: Path, tmp_path: Path) -> None:
    path = project / "trainer.yaml"
    path.write_text("command: [python, train.py]\ncode: [train.py, lib.txt]\ndata: [corpora]\n")
    cli("recipe", "add", "trainer", "-f", str(path), cwd=tmp_path)
    shown = document("recipe", "show", "trainer")
    assert shown["config"]["code"]["files"] == 2
    assert shown["config"]["data"][0]["to"] == "corpora"
