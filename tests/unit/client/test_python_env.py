"""The submitter's environment is written down, quickly and without ever costing a submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import errors
from runyard.client import python_env
from runyard.client.python_env import interpreter, requested


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment without anything in it, not even pip."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    return place


def packages_of(venv: Path) -> Path:
    return next(venv.glob("lib/python*/site-packages"))


def install(venv: Path, name: str, version: str = "1.0", **further: object) -> None:
    info = packages_of(venv) / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if further:
        (info / "direct_url.json").write_text(json.dumps(further))


def record(venv: Path, tmp_path: Path) -> python_env.Recording:
    return python_env.record(tmp_path / "cache", {"VIRTUAL_ENV": str(venv), "PATH": "/usr/bin:/bin"}, tmp_path)


def test_what_is_installed_is_listed_as_pip_reads_it(venv: Path, tmp_path: Path) -> None:
    install(venv, "nets", "2.1")
    install(venv, "pip", "23.0")
    url = "https://ada:secret@git.example/words.git"
    install(venv, "words", url=url, vcs_info={"vcs": "git", "commit_id": "abc"})
    install(venv, "mine", url="file:///home/ada/mine", dir_info={"editable": True})
    found = record(venv, tmp_path)
    assert found.freeze.splitlines() == [
        "# mine==1.0 was installed from /home/ada/mine",
        "nets==2.1",
        "words @ git+https://git.example/words.git@abc",
    ]
    assert found.recorded.python == ".".join(map(str, sys.version_info[:3]))
    assert found.recorded.packages == 3
    assert found.recorded.notes == ("mine==1.0 was installed from /home/ada/mine",)
    assert set(found.texts()) == {found.recorded.freeze}


def test_nothing_is_started_or_read_again_while_nothing_changes(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(venv, "nets")
    first = record(venv, tmp_path)
    monkeypatch.setattr(interpreter.subprocess, "run", None)
    assert record(venv, tmp_path) == first
    install(venv, "words")
    assert record(venv, tmp_path).recorded.packages == 2


def test_conda_environments_are_listed_as_conda_reads_them(venv: Path, tmp_path: Path) -> None:
    install(venv, "nets")
    (venv / "conda-meta").mkdir()
    told = {"url": "https://conda.example/linux-64/nets-1.0-0.conda", "md5": "0" * 32}
    (venv / "conda-meta" / "nets-1.0-0.json").write_text(json.dumps(told))
    (venv / "conda-meta" / "history").write_text("")
    found = record(venv, tmp_path)
    assert found.conda == f"@EXPLICIT\n{told['url']}#{told['md5']}\n"
    locked, texts = requested.complete("sync", found, None)
    assert locked["kind"] == "conda"
    assert texts[locked["file"]].decode() == found.conda


@pytest.mark.parametrize("broken", ["#!/bin/sh\necho no >&2; exit 1\n", "#!/bin/sh\necho words\n"])
def test_an_interpreter_that_does_not_work_costs_nothing(tmp_path: Path, broken: str) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "python"
    program.write_text(broken)
    program.chmod(0o700)
    found = python_env.record(tmp_path / "cache", {"PATH": str(tmp_path / "bin")}, tmp_path)
    assert found.recorded.python == "" and found.texts() == {}
    assert "could not be recorded" in found.recorded.notes[0]


def test_a_machine_without_python_is_told(tmp_path: Path) -> None:
    found = python_env.record(tmp_path / "cache", {"PATH": str(tmp_path)}, tmp_path)
    assert found.recorded.notes == ("there is no python here",)


def test_pyenv_is_not_asked_what_it_would_choose(venv: Path, tmp_path: Path) -> None:
    root = tmp_path / "pyenv"
    (root / "shims").mkdir(parents=True)
    (root / "versions").mkdir()
    (root / "versions" / "mine").symlink_to(venv)
    shim = root / "shims" / "python"
    shim.write_text("#!/bin/sh\nexit 1\n")
    shim.chmod(0o700)
    (tmp_path / ".python-version").write_text("mine\n")
    install(venv, "nets")
    found = python_env.record(tmp_path / "cache", {"PATH": str(root / "shims")}, tmp_path / "deep" / "er")
    assert found.freeze == "nets==1.0\n"


# --- sync -------------------------------------------------------------------------------------------------------


def test_a_lock_is_the_same_for_all_who_have_the_same(venv: Path, tmp_path: Path) -> None:
    install(venv, "nets")
    install(venv, "mine", url=(tmp_path / "project").as_uri(), dir_info={"editable": True})
    locked, texts = requested.complete("sync", record(venv, tmp_path), tmp_path / "project")
    assert texts[locked["file"]] == b"nets==1.0\n"
    assert locked["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert len(texts) == 2


@pytest.mark.parametrize("code", [None, "elsewhere"])
def test_what_cannot_be_built_elsewhere_is_named(venv: Path, tmp_path: Path, code: str | None) -> None:
    install(venv, "nets")
    install(venv, "mine", url="file:///home/ada/mine", dir_info={"editable": True})
    with pytest.raises(errors.InvalidInput, match=r"mine \(/home/ada/mine\)"):
        requested.complete("sync", record(venv, tmp_path), tmp_path / code if code else None)


def test_an_empty_environment_cannot_be_synced(venv: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="nothing to sync"):
        requested.complete("sync", record(venv, tmp_path), None)


# --- files ------------------------------------------------------------------------------------------------------


def test_words_and_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("nets\n")
    assert requested.resolve("sync", tmp_path) == "sync"
    assert requested.resolve("conda:nets", tmp_path) == "conda:nets"
    found = requested.resolve("requirements.txt", tmp_path)
    assert found == python_env.EnvFile(path=tmp_path / "requirements.txt")
    with pytest.raises(errors.InvalidInput, match="there is no file"):
        requested.resolve("requirement.txt", tmp_path)


@pytest.mark.parametrize("line", ["-r other.txt", "-e .", "./mine.whl", "--constraint=c.txt", "."])
def test_a_file_names_nothing_that_stays_here(venv: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"nets\n{line}\n")
    given = requested.resolve(os.fspath(tmp_path / "requirements.txt"), tmp_path)
    with pytest.raises(errors.InvalidInput, match="line 2"):
        requested.complete(given, record(venv, tmp_path), None)


def test_a_yaml_file_is_for_conda(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies: [-e .]\n")
    made, texts = requested.complete(requested.resolve("environment.yml", tmp_path), record(venv, tmp_path), None)
    assert (made["kind"], made["name"]) == ("conda", "environment.yml")
    assert texts[made["file"]] == b"dependencies: [-e .]\n"
