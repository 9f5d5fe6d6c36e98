"""A run that is interrupted and goes on, on real parts: it ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runyard.client.run import Run
from runyard.runner import json_files
from tests.acceptance.pool import SITE, Pool
from tests.labs.components import TRAINER_PYTHON
from tests.labs.disks import small_disk
from tests.labs.supervise import remove
from tests.labs.waiting import until
from tests.labs.yard import Yard

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torch-digits"
PATIENCE_S = 400.0
STEPS = ("--epochs", "4", "--pictures", "4000", "--save-every", "5", "--pause", "0.5")  # two minutes in pauses alone
LIMIT = "60s"


@pytest.fixture
def pool(yard: Yard) -> Pool:
    """Machines without a scheduler, which see nothing of each other; a loss is noticed within two minutes."""
    yard.stop()
    (yard.home / "config.toml").write_text("lease = 5\npermit = 30\n")
    yard.start()
    return Pool(yard)


@pytest.mark.long
@pytest.mark.component("trainer")
def test_three_interruptions_leave_no_trace_in_the_result(yard: Yard, pool: Pool, tmp_path: Path) -> None:
    first, second = _submit(yard, *STEPS[:-2]), _submit(yard, *STEPS, time=LIMIT)
    with _node(pool, "hoff", cpus=2) as hoff:
        expected = _result(first, tmp_path / "whole")
        _until_event(second, "continued", "its time limit")
        _until_it_goes_on(second, 2)
        until(lambda: second.refresh().data["checkpoint"]["attempt"] == 2, "a checkpoint of it", timeout_s=PATIENCE_S)
        _lose(hoff, pool.home("hoff") / "site", second.id)
    with _node(pool, "norman"):
        _until_event(second, "continued", "lost")
        _until_it_goes_on(second, 3)
        second.cancel()
        assert second.state == "cancelled"
        resumed = yard.cli("retry", "--resume", str(second.id))
        assert resumed.returncode == 0, resumed.stderr
        assert _result(second, tmp_path / "again") == expected
    attempts = second.refresh().data["attempts"]
    assert [attempt["node"] for attempt in attempts[:4]] == ["hoff", "hoff", "norman", "norman"]
    assert [attempt["reason"] for attempt in attempts[:3]] == ["timeout", "lost", "user"]
    assert any("which is fetched" in event["message"] for event in second.events() if event["attempt"] == 3)


def test_without_a_checkpoint_in_the_yard_it_begins_anew_and_says_so(yard: Yard, pool: Pool) -> None:
    script = "echo resume=$RUNYARD_RESUME; echo 1 >$CHECKPOINT_DIR/step; test $RUNYARD_ATTEMPT -gt 1 || sleep 600"
    run = yard.client().submit(["sh", "-c", script], site=SITE, cwd="/tmp", checkpoint={"every": "never"})
    with _node(pool, "hoff") as hoff:
        until(lambda: run.refresh().node and "resume" in run.logs(), "its first words", timeout_s=PATIENCE_S)
        _lose(hoff, pool.home("hoff") / "site", run.id)
    with _node(pool, "norman"):
        assert run.wait(PATIENCE_S).state == "succeeded"
    assert run.logs(attempt=2) == "resume=\n"
    told = [event["message"] for event in run.events() if event["kind"] == "checkpoint"]
    assert told == ["starts from the beginning: nothing that attempt 1 at hoff may have saved has come to the yard"]


def test_what_it_saved_can_be_had_while_it_runs(yard: Yard, tmp_path: Path) -> None:
    script = "cd $CHECKPOINT_DIR; echo 1 >step; echo half >next.tmp; echo saved; sleep 600"
    run = yard.client().submit(["sh", "-c", script])
    until(lambda: "saved" in run.logs(), "its word", timeout_s=PATIENCE_S)
    fetched = yard.cli("fetch", str(run.id), "--checkpoints", "last", "-o", str(tmp_path / "here"), timeout=120)
    assert fetched.returncode == 0, fetched.stderr
    assert _files(tmp_path / "here") == {"checkpoints/1/step": "1\n"}
    place = run.checkpoint(tmp_path / "python")
    assert (place / "step").read_text() == "1\n"
    shown = yard.cli("show", str(run.id)).stdout
    assert "1, of attempt 1, 2 B in 1 file" in shown
    run.cancel()
    refused = yard.cli("retry", "--resume", "--afresh", str(run.id))
    assert refused.returncode != 0 and "exclude each other" in refused.stderr


def test_nothing_saved_is_told_in_one_sentence(yard: Yard, tmp_path: Path) -> None:
    run = yard.client().submit(["true"]).wait(PATIENCE_S)
    resumed = yard.cli("retry", "--resume", str(run.id))
    assert resumed.returncode != 0
    assert f"run {run.id} has saved nothing that it could go on from" in resumed.stderr
    fetched = yard.cli("fetch", str(run.id), "--checkpoints", "all", "-o", str(tmp_path))
    assert fetched.returncode != 0 and f"run {run.id} has saved nothing" in fetched.stderr


def test_afresh_discards_what_was_saved(yard: Yard) -> None:
    script = "echo resume=$RUNYARD_RESUME; ls $CHECKPOINT_DIR; echo 1 >$CHECKPOINT_DIR/step; exit 1"
    run = yard.client().submit(["sh", "-c", script]).wait(PATIENCE_S)
    assert run.retry().wait(PATIENCE_S).logs(attempt=2).splitlines()[1:] == ["step"]
    again = run.retry(afresh=True).wait(PATIENCE_S)
    assert again.logs(attempt=3) == "resume=\n"


@pytest.mark.component("root")
def test_a_full_checkpoint_directory_is_named(yard: Yard, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "size=2m") as full:
        script = "dd if=/dev/zero of=$CHECKPOINT_DIR/last.pt bs=1M count=8 2>/dev/null"
        run = yard.client().submit(["sh", "-c", script], env={"CHECKPOINT_DIR": str(full)}).wait(PATIENCE_S)
        assert (run.state, run.reason) == ("failed", "disk")
        assert run.detail == f"exited with 1; no space is left in {full}"


def _submit(yard: Yard, *words: str, time: str | None = None) -> Run:
    fields: dict[str, Any] = {"resources": {"time": time}, "checkpoint": {"every": "2s", "grace": 10}} if time else {}
    command = [str(TRAINER_PYTHON), "fit.py", *words]
    return yard.client().submit(command, site=SITE, cwd=str(EXAMPLE), code=False, seed=7, **fields)


@contextlib.contextmanager
def _node(pool: Pool, name: str, cpus: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    with pool.agent(name, "--node", name, cpus=cpus) as agent:
        yield agent


def _result(run: Run, place: Path) -> str:
    assert run.wait(PATIENCE_S).state == "succeeded", (run.data, run.logs())
    run.fetch(place)
    return str(json.loads((place / "result.json").read_text())["exactly"])


def _until_event(run: Run, kind: str, word: str) -> None:
    def has_happened() -> bool:
        return any(event["kind"] == kind and word in event["message"] for event in run.events())

    until(has_happened, f"it is {kind}: {word}", timeout_s=PATIENCE_S)


def _until_it_goes_on(run: Run, attempt: int) -> None:
    until(lambda: run.refresh().attempt == attempt, f"attempt {attempt}", timeout_s=PATIENCE_S)
    until(lambda: "going on in epoch" in run.logs(attempt=attempt), "its first words", timeout_s=PATIENCE_S)


def _lose(agent: subprocess.Popen[bytes], site: Path, run: int) -> None:
    """As when the plug is pulled and the disk is gone: the agent first, then whoever could tell anything."""
    agent.kill()
    agent.wait()
    homes = sorted((site / "runs" / str(run)).glob("a*"), key=lambda home: int(home.name[1:]))
    runner = psutil.Process(json_files.read(os.fspath(homes[-1] / "started" / "runner.json"))["pid"])
    above = [process for process in runner.parents() if str(site) in " ".join(_command(process))]  # what forked it
    for process in [*above, runner, *runner.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    remove(site)
    assert not site.exists()


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def _files(place: Path) -> dict[str, str]:
    return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}
