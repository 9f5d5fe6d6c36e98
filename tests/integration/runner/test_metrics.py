"""Metrics are read from what a run leaves and prints, by the runner, whatever Python it has."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runner.attempts import Attempt, NewAttempt, python_job, shell_job, until, waits_for_fuse
from tests.integration.runner.conftest import NewZygote
from tests.labs import disks

TRAIN = """
import os, time
with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.csv"), "w", buffering=1) as file:
    file.write("step,loss\\n")
    for step in range(3):
        file.write("%d,%s\\n" % (step, 0.5 ** step))
    while os.path.exists("go on"):
        time.sleep(0.01)
"""


def lines(attempt: Attempt) -> list[dict[str, Any]]:
    return attempt.lines("metrics.jsonl")


def losses(attempt: Attempt) -> list[tuple[float, float]]:
    return [(line["step"], line["m"]["loss"]) for line in lines(attempt) if "loss" in line["m"]]


def with_outputs(new_attempt: NewAttempt, argv: list[str], site: Path, **spec: Any) -> Attempt:
    place = site / "named"
    place.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "OUTPUT_DIR": str(place), **spec.pop("env", {})}
    return new_attempt(argv, env=env, **spec)


CURVE = [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_a_short_run_has_its_metrics_in_the_record(new_attempt: NewAttempt, site: Path, python: str) -> None:
    attempt = with_outputs(new_attempt, python_job(TRAIN), site, python=python)
    record = attempt.run()
    assert losses(attempt) == CURVE
    assert record["sizes"]["metrics.jsonl"] == (attempt.directory / "metrics.jsonl").stat().st_size
    assert lines(attempt)[0]["src"] == "metrics.csv"


def test_they_are_read_while_it_runs(new_attempt: NewAttempt, site: Path, python: str) -> None:
    attempt = with_outputs(new_attempt, python_job(TRAIN), site, python=python)
    (attempt.work / "go on").touch()
    attempt.begin()
    until(lambda: losses(attempt) == CURVE, 60)
    assert attempt.status() is None or attempt.status()["state"] == "running"  # type: ignore[index]
    (attempt.work / "go on").unlink()
    assert attempt.record()["exit_code"] == 0
    assert losses(attempt) == CURVE


def test_a_relative_folder_is_meant_from_the_working_directory(new_attempt: NewAttempt, site: Path) -> None:
    attempt = new_attempt(
        shell_job("mkdir $OUTPUT_DIR; printf 'step,loss\\n1,0.5\\n' > $OUTPUT_DIR/metrics.csv"),
        env={"PATH": os.environ["PATH"], "OUTPUT_DIR": "$HOME"},
    )
    attempt.run()
    assert losses(attempt) == [(1, 0.5)]


def test_only_what_this_attempt_wrote_is_its_own(new_attempt: NewAttempt, site: Path) -> None:
    first = with_outputs(new_attempt, python_job(TRAIN), site)
    first.run()
    idle = with_outputs(new_attempt, ["true"], site)
    assert "metrics.jsonl" not in idle.run()["sizes"]
    again = with_outputs(new_attempt, python_job(TRAIN), site)
    again.run()
    assert losses(again) == CURVE


def test_what_a_run_prints(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(
        shell_job("for i in 1 2 3; do echo \"step $i loss=0.$i\"; done; echo err loss=9 >&2; printf 'loss=0.5'"),
        python=python,
        metrics={"stdout": [r"loss=(?P<loss>\S+)", r"step (?P<step>\d+)"]},
    )
    record = attempt.run()
    assert sorted(losses(attempt), key=str) == sorted([(1, 0.1), (2, 0.2), (3, 0.3), (None, 9.0), (None, 0.5)], key=str)
    assert record["sizes"]["metrics.jsonl"] == (attempt.directory / "metrics.jsonl").stat().st_size


def test_it_is_read_while_it_runs_and_from_streams_that_are_kept_apart(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(
        shell_job("echo loss=0.5; exec sleep 600"), metrics={"stdout": [r"loss=(?P<loss>\S+)"]}, split_output=True
    )
    runner = attempt.begin()
    until(lambda: losses(attempt) == [(None, 0.5)], 60)
    attempt.control(stop={"reason": "user", "grace": 0})
    runner.send_signal(signal.SIGUSR2)
    assert attempt.record()["ending"] == "stopped"


def test_an_expression_that_takes_for_ever_does_not_keep_a_run_from_being_stopped(
    new_attempt: NewAttempt, python: str
) -> None:
    job = "i=0; while [ $i -lt 60 ]; do printf a; i=$((i+1)); done; echo !; echo loss=0.5; exec sleep 600"
    patterns = {"stdout": [r"(?P<x>(a+)+)$", r"loss=(?P<loss>\S+)"]}
    attempt = new_attempt(shell_job(job), python=python, metrics=patterns)
    runner = attempt.begin()
    until(lambda: losses(attempt) == [(None, 0.5)], 60)
    assert "takes too long" in attempt.text()
    attempt.control(stop={"reason": "user", "grace": 0})
    runner.send_signal(signal.SIGUSR2)
    assert attempt.record()["ending"] == "stopped"


def test_the_job_writes_to_the_same_file(new_attempt: NewAttempt, site: Path) -> None:
    """Whole lines of both."""
    code = TRAIN + "\nfor i in range(2000):\n    with open('../metrics.jsonl', 'ab', 0) as file:\n"
    code += '        file.write(b\'{"t": 1763181001.0, "step": %d, "m": {"own": 1}}\\n\' % i)\n'
    attempt = with_outputs(new_attempt, python_job(code), site)
    attempt.run()
    assert losses(attempt) == CURVE
    assert sum("own" in line["m"] for line in lines(attempt)) == 2000


def test_a_folder_that_cannot_be_read_is_no_failure(new_attempt: NewAttempt, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", Path("/proc/self/mem"), Path("/dev")):
        attempt = new_attempt(["true"], env={"PATH": os.environ["PATH"], "OUTPUT_DIR": str(place)})
        record = attempt.run()
        assert (record["exit_code"], "metrics.jsonl" in record["sizes"]) == (0, False)


@pytest.mark.component("fuse")
def test_a_file_server_that_hangs_does_not_keep_a_run_from_being_stopped(new_attempt: NewAttempt, site: Path) -> None:
    attempt = with_outputs(new_attempt, shell_job("echo > begun; exec sleep 600"), site)
    runner = attempt.begin()
    until(lambda: (attempt.work / "begun").exists())
    with disks.silent_disk(site / "named"):
        until(lambda: waits_for_fuse(runner.pid), 60)
        attempt.control(stop={"reason": "user", "grace": 0})
        runner.send_signal(signal.SIGUSR2)
        attempt.record()
        assert runner.wait(60) == 0


def test_a_runner_that_takes_several_runs_keeps_them_apart(
    new_attempt: NewAttempt, new_zygote: NewZygote, site: Path
) -> None:
    zygote = new_zygote()
    for loss in (0.5, 0.25):
        place = site / f"place {loss}"
        place.mkdir()
        attempt = new_attempt(
            shell_job(f"printf 'step,loss\\n1,{loss}\\n' > \"$OUTPUT_DIR/metrics.csv\""),
            env={"PATH": os.environ["PATH"], "OUTPUT_DIR": str(place)},
        )
        zygote.start(attempt)
        attempt.record()
        assert losses(attempt) == [(1, loss)]


@pytest.mark.parametrize("named", [True, False])
def test_a_run_without_metrics_loads_nothing_for_them(new_attempt: NewAttempt, site: Path, named: bool) -> None:
    """The cost of a short run is what makes ten thousand of them possible."""

    def short_run() -> set[str] | None:
        """What one loads; on a busy machine not every run is short."""
        attempt = new_attempt(["true"], env={"OUTPUT_DIR": str(site)} if named else {})
        attempt.command[1:1] = ["-X", "importtime"]
        _, said = attempt.begin(stderr=subprocess.PIPE).communicate(timeout=90)
        loaded = {line.split("|")[-1].strip() for line in said.decode().splitlines()}
        return loaded if attempt.record()["beat"] == 1 else None

    loaded: set[str] = until(short_run)
    assert {name for name in loaded if name.startswith("runyard_runner.metrics")} == {
        "runyard_runner.metrics", "runyard_runner.metrics.folder", "runyard_runner.metrics.watch",
    }  # fmt: skip
    assert not loaded & {"threading", "csv", "zipfile"}
