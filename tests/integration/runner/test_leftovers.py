"""What a dead runner leaves behind is found and ended, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from runyard.runner import leftovers
from tests.integration.runner.attempts import DAEMON, Attempt, NewAttempt, lives, python_job, shell_job, until
from tests.integration.runner.conftest import NewZygote


def sweep_by_program(attempt: Attempt) -> dict[str, Any]:
    command = [*attempt.command[:-2], "sweep", str(attempt.directory)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=90).stdout))


def kill(attempt: Attempt, runner: subprocess.Popen[bytes]) -> None:
    """With the first process, which the kernel ends a moment later."""
    first = until(attempt.status)["child"]
    runner.kill()
    runner.wait()
    until(lambda: not lives(first))


def test_tagged_processes_are_found_wherever_they_hide(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job(DAEMON + "\ntime.sleep(600)"), python=python)
    bystander = new_attempt(shell_job("echo $$ > ready; exec sleep 600"))
    bystander.begin()
    runner = attempt.begin()
    (daemon,) = attempt.pids("daemon")
    kill(attempt, runner)
    assert lives(daemon)
    assert sweep_by_program(attempt) == {"killed": 1, "left": 0}
    until(lambda: not lives(daemon))
    assert lives(*bystander.pids("ready"))
    assert leftovers.sweep(str(attempt.directory)) == {"killed": 0, "left": 0}


def test_descendants_without_the_tag_are_found_by_their_parent(new_attempt: NewAttempt) -> None:
    job = "(trap '' HUP; env -i setsid sh -c 'echo $$ > bare; sleep 600' & echo $! > tagged; wait) & sleep 600"
    attempt = new_attempt(shell_job(job))
    runner = attempt.begin()
    pids = attempt.pids("bare")
    runner.kill()
    runner.wait()
    assert leftovers.sweep(str(attempt.directory))["left"] == 0
    until(lambda: not any(map(lives, pids)))


def test_the_session_is_a_trace_too(new_attempt: NewAttempt) -> None:
    """A process that threw its environment away and whose parents are gone, but never left the session."""
    attempt = new_attempt(shell_job("(env -i sh -c 'echo $$ > bare; exec sleep 600' &); exec sleep 600"))
    runner = attempt.begin()
    (bare,) = attempt.pids("bare")
    kill(attempt, runner)
    assert lives(bare)
    assert leftovers.sweep(str(attempt.directory)) == {"killed": 1, "left": 0}
    until(lambda: not lives(bare))


def test_a_session_number_that_is_in_use_again_is_left_alone(new_attempt: NewAttempt) -> None:
    """The runner's last sign of life was an hour ago: what started since is somebody else's."""
    attempt = new_attempt(shell_job("(env -i sh -c 'echo $$ > bare; exec sleep 600' &); exec sleep 600"))
    runner = attempt.begin()
    (bare,) = attempt.pids("bare")
    kill(attempt, runner)
    for name in ("status.json", "started"):
        os.utime(attempt.directory / name, (time.time() - 3600, time.time() - 3600))
    assert leftovers.sweep(str(attempt.directory)) == {"killed": 0, "left": 0}
    assert lives(bare)
    os.utime(attempt.directory / "status.json")


@pytest.mark.component("cgroup memory")
def test_the_control_group_is_emptied_and_removed(new_attempt: NewAttempt) -> None:
    code = DAEMON.replace("os.setsid()", "os.setsid(); os.environ.clear()")
    attempt = new_attempt(python_job(code + "\ntime.sleep(600)"), memory_limit=1 << 30)
    runner = attempt.begin()
    (daemon,) = attempt.pids("daemon")
    group = Path((attempt.document("started/runner.json") or {})["cgroup"])
    assert str(daemon) in (group / "cgroup.procs").read_text().split()
    runner.kill()
    runner.wait()
    leftovers.sweep(str(attempt.directory))
    until(lambda: not lives(daemon))
    assert not group.exists()


def test_a_directory_without_traces_is_no_error(tmp_path: Path) -> None:
    assert leftovers.sweep(str(tmp_path)) == {"killed": 0, "left": 0}
    (tmp_path / "spec.json").write_text("{")
    assert leftovers.sweep(str(tmp_path)) == {"killed": 0, "left": 0}


def test_a_living_runner_is_ended_as_well(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("echo $$ > ready; exec sleep 600"))
    runner = attempt.begin()
    pids = attempt.pids("ready")
    assert sweep_by_program(attempt)["left"] == 0
    assert runner.wait(90) < 0
    until(lambda: not any(map(lives, pids)))


def test_a_runner_that_went_on_to_another_run_is_spared(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    number, first, second = new_zygote().start_behind(new_attempt, shell_job("echo $$ > ready; exec sleep 600"))
    (pid,) = second.pids("ready")
    assert leftovers.sweep(str(first.directory)) == {"killed": 0, "left": 0}
    assert lives(number) and lives(pid)
