"""Python environments are built or found at the site before a run starts, or the run says why not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.agent import Agent
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from tests.integration.agent.conftest import Crew
from tests.integration.agent.wheels import Index

PATIENCE_S = 240.0
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
SHOW = ["python", "-c", "import os, sys, nets; print(nets.version, sys.prefix == os.environ['VIRTUAL_ENV'])"]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index")


def described(index: Index, **options: str) -> SiteSpec:
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(index.directory)}
    return SiteSpec(env={**index.env, **here}, options=options)


def requirements(crew: Crew, text: str, name: str = "requirements.txt") -> dict[str, str]:
    return {"file": crew.yard.store(text.encode()), "kind": "pip", "name": name}


def ended(crew: Crew, key: AttemptKey) -> tuple[str, str]:
    record = crew.yard.ended[key].record or {}
    return record["ending"], record.get("message") or ""


def builds(crew: Crew) -> list[Path]:
    return [path for path in crew.site.glob("envs/*/*") if (path / "bin").is_dir() and not path.is_symlink()]


def drive(crew: Crew, agent: Agent, condition: Callable[[], object], what: str) -> None:
    """To make an environment takes pip a while."""
    crew.drive(agent, condition, what, PATIENCE_S)


def test_two_runs_share_what_is_built_once(crew: Crew, index: Index) -> None:
    index.add("nets")
    agent, python = crew.agent(described=described(index)), requirements(crew, "nets==1.0\n")
    keys = [crew.yard.submit(SHOW, python_env=python) for _ in range(2)]
    drive(crew, agent, lambda: all(key in crew.yard.ended for key in keys), "both ends")
    assert [crew.yard.log(key) for key in keys] == ["1.0 True\n"] * 2
    [first] = builds(crew)
    later = crew.yard.submit(SHOW, python_env=python)
    drive(crew, agent, lambda: later in crew.yard.ended, "a later end")
    assert crew.yard.log(later) == "1.0 True\n" and builds(crew) == [first]
    told = {report.detail for report in crew.yard.reports if report.detail}
    assert any(text.startswith("building the Python environment") for text in told)


def test_setup_lines_of_the_site_do_not_hide_it(crew: Crew, index: Index) -> None:
    index.add("nets")
    site = described(index)
    agent = crew.agent(described=SiteSpec(env=site.env, setup=("PATH=/usr/bin:/bin",)))
    key = crew.yard.submit(SHOW, python_env=requirements(crew, "nets"))
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "1.0 True\n"


def test_a_lock_is_built_for_its_version_of_python(crew: Crew, index: Index) -> None:
    index.add("nets")
    agent = crew.agent(described=described(index))
    lock = {"use": "sync", **requirements(crew, "nets==1.0\n", "lock")}
    good = crew.yard.submit(SHOW, python_env={**lock, "python": VERSION})
    other = crew.yard.submit(SHOW, python_env={**lock, "python": "3.99"})
    drive(crew, agent, lambda: {good, other} <= set(crew.yard.ended), "both ends")
    assert crew.yard.log(good) == "1.0 True\n"
    ending, message = ended(crew, other)
    assert ending == "staging"
    assert f"is one of Python 3.99, and this site has {VERSION} (" in message


def test_a_failure_is_told_in_the_words_of_pip_and_tried_again_by_the_next_run(crew: Crew, index: Index) -> None:
    agent, python = crew.agent(described=described(index)), requirements(crew, "nets==1.0\n")
    first = crew.yard.submit(SHOW, python_env=python)
    drive(crew, agent, lambda: first in crew.yard.ended, "the end")
    ending, message = ended(crew, first)
    assert ending == "staging"
    assert "cannot be built from requirements.txt" in message
    assert "No matching distribution found for nets==1.0" in message
    assert not builds(crew)
    index.add("nets")
    second = crew.yard.submit(SHOW, python_env=python)
    drive(crew, agent, lambda: second in crew.yard.ended, "the end of the next")
    assert crew.yard.log(second) == "1.0 True\n"


def builder(crew: Crew) -> int:
    """The process that builds."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(os.fsencode(crew.site / "pythons-")) for word in words):
            return int(path.parent.name)
    raise AssertionError("nobody builds")


def test_a_killed_build_is_begun_again(crew: Crew, index: Index, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    index.add_slow(begun, go)
    agent = crew.agent(described=described(index))
    key = crew.yard.submit(["python", "-c", "import slow; print(slow.version)"], python_env=requirements(crew, "slow"))
    drive(crew, agent, begun.exists, "the middle of the build")
    os.kill(builder(crew), signal.SIGKILL)
    begun.unlink()
    drive(crew, agent, begun.exists, "the middle of the next build")
    go.touch()
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "1.0\n"


def test_the_next_agent_finds_the_build_under_way(crew: Crew, index: Index, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    index.add_slow(begun, go)
    key = crew.yard.submit(["python", "-c", "import slow; print(slow.version)"], python_env=requirements(crew, "slow"))
    first = crew.agent(described=described(index))
    drive(crew, first, begun.exists, "the middle of the build")
    working = builder(crew)
    next_one = crew.agent(described=described(index))
    told = len(crew.yard.reports)
    drive(crew, next_one, lambda: any(r.detail for r in crew.yard.reports[told:]), "it knows of the build")
    assert builder(crew) == working
    go.touch()
    drive(crew, next_one, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "1.0\n"
    assert len(builds(crew)) == 1


def test_a_run_that_is_cancelled_meanwhile_ends_at_once(crew: Crew, index: Index, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    index.add_slow(begun, go)
    agent = crew.agent(described=described(index))
    key = crew.yard.submit(["true"], python_env=requirements(crew, "slow"))
    drive(crew, agent, begun.exists, "the middle of the build")
    crew.yard.cancel(key)
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    go.touch()


# --- conda ------------------------------------------------------------------------------------------------------


def conda_tree(root: Path, *names: str) -> None:
    """Directories as conda leaves them, with a python that runs."""
    for name in names:
        (root / "envs" / name / "bin").mkdir(parents=True)
        (root / "envs" / name / "bin" / "python").symlink_to(os.path.realpath(sys.executable))


SHOW_CONDA = ["python", "-c", "import os; print(os.environ['CONDA_PREFIX'], os.environ['CONDA_DEFAULT_ENV'])"]


@pytest.mark.parametrize("by_path", [False, True])
def test_a_conda_environment_of_the_site_is_used(crew: Crew, index: Index, tmp_path: Path, by_path: bool) -> None:
    root = tmp_path / "conda"
    conda_tree(root, "nets")
    agent = crew.agent(described=described(index, conda_root=str(root)))
    named = f"conda:{root}/envs/nets" if by_path else "conda:nets"
    key = crew.yard.submit(SHOW_CONDA, python_env=named)
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == f"{root}/envs/nets nets\n"


def test_one_that_is_not_there_is_told_with_those_that_are(crew: Crew, index: Index, tmp_path: Path) -> None:
    conda_tree(tmp_path / "conda", "nets", "words")
    agent = crew.agent(described=described(index, conda_root=str(tmp_path / "conda")))
    keys = [crew.yard.submit(["true"], python_env=f"conda:{name}") for name in ("nest", "/no/such")]
    drive(crew, agent, lambda: all(key in crew.yard.ended for key in keys), "both ends")
    told = [ended(crew, key) for key in keys]
    assert told[0][0] == told[1][0] == "staging"
    assert told[0][1].startswith("there is no conda environment 'nest' at this site; it has ")
    assert {"nets", "words"} <= set(told[0][1].partition("it has ")[2].split(", "))
    assert told[1][1] == "there is no conda environment /no/such at this site: it has no bin/python"


def yml(crew: Crew) -> dict[str, Any]:
    return {"file": crew.yard.store(b"dependencies: [python]\n"), "kind": "conda", "name": "environment.yml"}


def test_an_environment_file_needs_conda_at_the_site(crew: Crew, index: Index) -> None:
    site = described(index)
    agent = crew.agent(described=SiteSpec(env={**site.env, "PATH": "/usr/bin:/bin", "CONDA_EXE": "", "MAMBA_EXE": ""}))
    key = crew.yard.submit(["true"], python_env=yml(crew))
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    ending, message = ended(crew, key)
    assert ending == "staging" and "neither conda, mamba nor micromamba is at this site" in message


def test_an_environment_file_is_given_to_conda(crew: Crew, index: Index, tmp_path: Path) -> None:
    """A program with conda's words, which notes them and makes the directory."""
    root = tmp_path / "conda"
    (root / "bin").mkdir(parents=True)
    program = root / "bin" / "conda"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/said\ncat "$6" > {tmp_path}/file\n'
        f'mkdir -p "$4/bin" && ln -s {os.path.realpath(sys.executable)} "$4/bin/python"\n'
    )
    program.chmod(0o700)
    site = described(index, conda_root=str(root))
    env = {**site.env, "PATH": "/usr/bin:/bin", "CONDA_EXE": "", "MAMBA_EXE": ""}
    agent = crew.agent(described=SiteSpec(env=env, options=site.options))
    key = crew.yard.submit(SHOW_CONDA, python_env=yml(crew))
    drive(crew, agent, lambda: key in crew.yard.ended, "the end")
    [made] = builds(crew)
    assert crew.yard.log(key) == f"{made} {made.name}\n"
    assert (tmp_path / "said").read_text().startswith(f"env create --prefix {made} --file ")
    assert (tmp_path / "file").read_text() == "dependencies: [python]\n"
