"""Outputs of a run that goes on: as they are at that moment, and without harm to what it still writes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client import Run
from tests.labs.waiting import until
from tests.labs.yard import Yard

PATIENCE_S = 90.0
SITE = "elsewhere"


def growing(go: Path) -> str:
    """Writes one file at a time and waits for a word in between; one file it writes to all the time."""
    return (
        f"cd $OUTPUT_DIR; echo one >whole; echo one >>grows; echo ready; while ! test -e {go};"
        " do echo more >>busy; done; echo two >>grows; mkdir later; echo 3 >later/file; echo again; sleep 300"
    )


def started(run: Run, word: str) -> Run:
    until(lambda: word in run.logs(), f"the run says {word}", timeout_s=PATIENCE_S)
    return run


def fetched(yard: Yard, run: Run, target: Path, *words: str) -> dict[str, bytes]:
    done = yard.cli("fetch", str(run.id), "-o", str(target), *words, timeout=120)
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}


@pytest.fixture(params=["in the yard", "over HTTP"])
def site(request: pytest.FixtureRequest, yard: Yard) -> Iterator[str]:
    if request.param == "in the yard":
        yield "local"
        return
    with _agent(yard):
        yield SITE


@contextlib.contextmanager
def _agent(yard: Yard) -> Iterator[None]:
    assert yard.cli("site", "add", SITE, "--kind", "local", "--served-by", "agent").returncode == 0
    token = yard.cli("token", "create", "agent", "--role", "agent", "--site", SITE, "-q").stdout.strip()
    home = yard.home / "agent"
    home.mkdir()
    env = {**yard.env, "RUNYARD_HOME": str(home), "RUNYARD_URL": yard.url, "RUNYARD_TOKEN": token, "RUNYARD_CPUS": "1"}
    command = [sys.executable, "-m", "runyard", "agent", "--site", SITE, "--dir", str(home / "site")]
    with (home / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(90)


def test_outputs_come_as_they_are_now(yard: Yard, site: str, tmp_path: Path) -> None:
    go, target = tmp_path / "go", tmp_path / "target"
    run = started(yard.client().submit(["sh", "-c", growing(go)], site=site), "ready")
    first = fetched(yard, run, target)
    assert (first["whole"], first["grows"]) == (b"one\n", b"one\n")
    assert set(first["busy"].splitlines()) == {b"more"}, "a prefix of a file that grows all the time"
    go.touch()
    started(run, "again")
    assert fetched(yard, run, target)["grows"] == b"one\ntwo\n"
    assert (target / "later/file").read_text() == "3\n"
    run.cancel()
    assert run.state == "cancelled"
    grown = next(output for output in run.outputs() if output.path == "grows")
    assert grown.size == 8, "what the run wrote later went into a file of its own"


def test_what_came_before_is_unharmed_by_what_is_written_later(yard: Yard, tmp_path: Path) -> None:
    """Blobs are named by their content, so one must never be the very file that a run writes to."""
    go = tmp_path / "go"
    run = started(yard.client().submit(["sh", "-c", growing(go)], site="local"), "ready")
    before, is_current = run.current_outputs()
    assert is_current
    go.touch()
    started(run, "again")
    run.fetch(tmp_path / "old", outputs=before)
    assert (tmp_path / "old/grows").read_bytes() == b"one\n"
    run.cancel()


def test_only_what_is_wanted_comes(yard: Yard, tmp_path: Path) -> None:
    run = yard.client().submit(["sh", "-c", "cd $OUTPUT_DIR; mkdir m; echo 1 >m/a.csv; echo 2 >b.csv; echo 3 >c"])
    run.wait(PATIENCE_S)
    assert set(fetched(yard, run, tmp_path / "one", "--glob", "*.csv")) == {"b.csv"}
    assert set(fetched(yard, run, tmp_path / "two", "--glob", "**/*.csv", "--glob", "c")) == {"b.csv", "m/a.csv", "c"}
    assert yard.cli("fetch", str(run.id), "--glob", "../x").returncode != 0


def test_a_run_that_waits_has_nothing_to_show(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    yard = make_yard(cpus=1)
    first = yard.client().submit(["sleep", "300"])
    waiting = yard.client().submit(["true"])
    assert waiting.current_outputs(timeout=5) == ([], False)
    first.cancel()


def test_a_site_that_does_not_answer_is_told(yard: Yard, tmp_path: Path) -> None:
    with _agent(yard):
        run = started(yard.client().submit(["sh", "-c", "echo ready; sleep 300"], site=SITE), "ready")
    assert run.current_outputs(timeout=1) == ([], False)
