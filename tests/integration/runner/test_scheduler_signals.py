"""Signals as schedulers send them: the process is warned once, and the record says what brought the end."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from runyard.runner import scheduler_signals
from tests.integration.runner.attempts import Attempt, NewAttempt, given_time, lives, python_job, until

# Counts what it is told; its helper knows nothing of signals.
COUNTS = """
import os, signal, subprocess, sys, time
def heard(number, frame):
    print("got", number, flush=True)
    {action}
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, heard)
helper = subprocess.Popen(["sleep", "600"])
for name, pid in (("helper", helper.pid), ("ready", os.getpid())):
    with open(name, "w") as file:
        print(pid, file=file)
while True:
    time.sleep(0.05)
"""
SAVES = COUNTS.format(action="time.sleep(0.3); sys.exit(0)")
GOES_ON = COUNTS.format(action="pass")
SLURM, GRID_ENGINE = {"signals": scheduler_signals.SLURM}, {"signals": scheduler_signals.GRID_ENGINE}
WARNED = f"got {signal.SIGUSR1:d}\n"


@pytest.fixture
def checkpoint(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "checkpoints").mkdir()
    return {"signal": "USR1", "grace": 60, "directory": str(tmp_path / "checkpoints")}


def tell(attempt: Attempt, runner_pid: int, *numbers: int) -> dict[str, Any]:
    for number in numbers:
        os.kill(runner_pid, number)
        until(lambda: (status := attempt.status()) and status["ending"])
    return attempt.record()


@pytest.mark.parametrize(
    ("known", "numbers", "ending"),
    [
        (SLURM, [signal.SIGUSR1], "timeout"),
        (SLURM, [signal.SIGUSR1, signal.SIGUSR1, signal.SIGTERM], "timeout"),
        (SLURM, [signal.SIGTERM], "stopped"),
        (GRID_ENGINE, [signal.SIGUSR1], "timeout"),
        (GRID_ENGINE, [signal.SIGUSR2, signal.SIGUSR2], "stopped"),
        ({"signals": {"means": {"USR1": "end", "USR2": "warning"}}}, [signal.SIGUSR2], "timeout"),
        ({"signals": {"means": {"USR1": "end", "USR2": "warning"}}}, [signal.SIGUSR1], "stopped"),
        ({"signals": None}, [signal.SIGTERM], "stopped"),
        ({"scheduler": "slurm"}, [signal.SIGUSR1], "timeout"),  # of an earlier version, as the next two
        ({"scheduler": "gridengine"}, [signal.SIGUSR2, signal.SIGUSR2], "stopped"),
        ({"scheduler": None}, [signal.SIGTERM], "stopped"),
    ],
)
def test_a_run_that_saves_is_warned_once(
    new_attempt: NewAttempt, checkpoint: dict[str, Any], python: str, known: dict[str, Any], numbers: list[int],
    ending: str,
) -> None:  # fmt: skip
    attempt = new_attempt(python_job(SAVES), python=python, **known, checkpoint=checkpoint)
    runner = attempt.begin()
    attempt.wait_for("ready")
    record = tell(attempt, runner.pid, *numbers)
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == (ending, "external", 0)
    assert attempt.text() == WARNED
    assert ("SIGUSR" in record["message"]) is (ending == "timeout")


def test_the_runners_own_timer_comes_first_and_the_scheduler_changes_nothing(
    new_attempt: NewAttempt, checkpoint: dict[str, Any]
) -> None:
    def play(limit: int) -> Attempt:
        attempt = new_attempt(python_job(SAVES), checkpoint=checkpoint, time_limit=limit, **SLURM)
        runner = attempt.begin()
        until(lambda: (status := attempt.status()) and status["ending"])
        tell(attempt, runner.pid, signal.SIGUSR1, signal.SIGTERM)
        return attempt

    attempt, limit = given_time(10, play, lambda attempt: attempt.record()["signal"] is None)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], attempt.text()) == ("timeout", None, WARNED)
    assert f"time limit of {limit} seconds" in record["message"]


def test_whoever_goes_on_after_a_warning_is_killed_when_its_grace_is_over(
    new_attempt: NewAttempt, checkpoint: dict[str, Any]
) -> None:
    rule = {**checkpoint, "grace": 3}
    attempt = new_attempt(python_job(GOES_ON), checkpoint=rule, **SLURM)
    runner = attempt.begin()
    pids = attempt.pids("ready", "helper")
    record = tell(attempt, runner.pid, signal.SIGUSR1)
    assert (record["ending"], record["signal"], attempt.text()) == ("timeout", signal.SIGKILL, WARNED)
    assert not any(map(lives, pids))


def test_without_checkpoints_a_users_signal_is_passed_on(new_attempt: NewAttempt) -> None:
    """Such as of `--option signal=B:USR1@60`: it ends nothing."""
    attempt = new_attempt(python_job(GOES_ON), **SLURM)
    runner = attempt.begin()
    _, helper = attempt.pids("ready", "helper")
    runner.send_signal(signal.SIGUSR1)
    attempt.wait_for_text(WARNED)
    assert lives(helper), "it is for the first process alone"
    runner.send_signal(signal.SIGTERM)
    assert attempt.record()["stop_reason"] == "external"


def test_without_a_scheduler_a_user_signal_is_no_notice(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(SAVES), beat=0.1)
    runner = attempt.begin()
    attempt.wait_for("ready")
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        runner.send_signal(number)
    status = until(lambda: (status := attempt.status()) and status["beat"] > 3 and status)
    assert (status["ending"], attempt.text()) == (None, "")
    attempt.control(stop={"reason": "user", "grace": 0})
    assert attempt.record()["stop_reason"] == "user"


def test_a_signal_to_all_may_reach_the_runner_last(new_attempt: NewAttempt) -> None:
    """Slurm sends it to one process after the other, and may be kept from going on in between."""
    attempt = new_attempt(["sh", "-c", "echo $$ > ready; exec sleep 600"], **SLURM)
    runner = attempt.begin()
    (first,) = attempt.pids("ready")
    os.kill(first, signal.SIGTERM)
    until(lambda: not psutil.pid_exists(first))  # the runner knows of its end, and waits for a signal of its own
    runner.send_signal(signal.SIGTERM)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], record["signal"]) == ("stopped", "external", signal.SIGTERM)


def test_a_signal_to_all_may_reach_a_shell_after_its_command(new_attempt: NewAttempt) -> None:
    """The shell then ends by itself, with the code that says which signal ended its command."""
    attempt = new_attempt(["sh", "-c", "sleep 600 & echo $! > ready; wait $!"], **SLURM)
    runner = attempt.begin()
    (command,) = attempt.pids("ready")
    shell = psutil.Process(command).ppid()
    os.kill(command, signal.SIGTERM)
    until(lambda: not psutil.pid_exists(shell))
    runner.send_signal(signal.SIGTERM)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == ("stopped", "external", 143), record


def test_a_wish_comes_before_the_schedulers_signal(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(SAVES), beat=600, **GRID_ENGINE)
    runner = attempt.begin()
    attempt.wait_for("ready")
    attempt.control(stop={"reason": "user", "grace": 5})
    record = tell(attempt, runner.pid, signal.SIGUSR2)
    assert (record["ending"], record["stop_reason"]) == ("stopped", "user")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_grid_engine_tells_all_processes_of_a_job(
    new_attempt: NewAttempt, checkpoint: dict[str, Any], tmp_path: Path, number: int
) -> None:
    """As it says itself in the job's spool directory: what the process had from it, it does not get again."""
    (tmp_path / "config").write_text("add_grp_id=65400\nenable_addgrp_kill=1\ncsp=0\n")
    attempt = new_attempt(python_job(SAVES), checkpoint=checkpoint, **GRID_ENGINE)
    runner = attempt.begin(env={**os.environ, "SGE_JOB_SPOOL_DIR": str(tmp_path)})
    pids = attempt.pids("ready", "helper")
    for pid in (runner.pid, *reversed(pids)):  # whoever ends all others last
        os.kill(pid, number)
    record = attempt.record()
    assert (record["stop_reason"], record["exit_code"]) == ("external", 0)
    assert attempt.text() == WARNED
    # What the process has a handler for is at its default again in what it starts: of that a helper dies.
    assert record["leftovers"] == (number == signal.SIGUSR2)


def test_a_signal_to_all_that_kills_the_process_before_the_runner_hears_of_it(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(["sleep", "600"], **SLURM)
    runner = attempt.begin()
    child = until(lambda: (attempt.status() or {}).get("child"))
    os.kill(child, signal.SIGTERM)
    until(lambda: not lives(child))
    runner.send_signal(signal.SIGTERM)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"]) == ("stopped", "external")
