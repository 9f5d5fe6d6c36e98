"""Setup lines of a site, environments that are laid over a job's own, and warnings to save in time."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from runyard import runner
from tests.integration.runner.attempts import Attempt, NewAttempt, given_time, python_job, shell_job

SAVES = """
import os, signal, subprocess, sys, time
helper = subprocess.Popen(["sleep", "600"])  # knows nothing of the signal, and must not die of it
def save(number, frame):
    print("helper", "lives" if helper.poll() is None else "died")
    open(os.path.join(sys.argv[1], "model"), "a").write("more")
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
time.sleep(600)
"""


def test_setup_lines_shape_the_environment_of_the_command(new_attempt: NewAttempt, python: str) -> None:
    lines = ["export FROM_SETUP='a b'\nexport MORE=1", "cd /", "greet() { echo hello $1; }", "greet you"]
    job = shell_job('echo "$FROM_SETUP $MORE $PWD"; exit 3')
    attempt = new_attempt(job, python=python, setup=lines)
    record = attempt.run()
    assert (record["ending"], record["exit_code"]) == ("exit", 3)
    assert attempt.text() == "hello you\na b 1 /\n"


def test_a_setup_line_that_fails_is_a_launch_failure_in_its_own_words(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("echo never"), setup=["echo ok", "echo no such module >&2; false", "echo skipped"])
    record = attempt.run()
    assert record["ending"] == "launch"
    assert record["message"] == "a setup line of the site failed (exit code 1): no such module"
    assert attempt.text() == "ok\nno such module\n"


def test_an_environment_laid_over_the_jobs_own(new_attempt: NewAttempt, python: str) -> None:
    job = shell_job('echo "$NATIVE $BOTH $OURS"')
    env = {"PATH": os.environ["PATH"], "BOTH": "ours", "OURS": "ours"}
    attempt = new_attempt(job, python=python, env=env, inherit_env=True)
    assert attempt.begin(env={**os.environ, "NATIVE": "theirs", "BOTH": "theirs"}).wait(90) == 0
    assert attempt.text() == "theirs ours ours\n"


def test_what_runs_may_import_is_behind_whatever_is_there(
    new_attempt: NewAttempt, python: str, runner_directory: str
) -> None:
    """A scheduler's job may have a path for Python, and modules that are loaded add to it."""
    job, ours = shell_job('echo "$PYTHONPATH"'), f"{runner_directory}/{runner.PACKAGES}"
    laid_over = new_attempt(job, python=python, inherit_env=True, setup=["export PYTHONPATH=/module:$PYTHONPATH"])
    assert laid_over.begin(env={**os.environ, "PYTHONPATH": "/theirs"}).wait(90) == 0
    assert laid_over.text() == f"/module:/theirs:{ours}\n"
    alone = new_attempt(job, python=python)
    alone.run()
    assert alone.text() == f"{ours}\n"


def test_a_job_without_any_environment_has_a_home(new_attempt: NewAttempt, python: str) -> None:
    """As where cron submitted it. What the job has is not touched."""
    attempt = new_attempt(shell_job('echo "$HOME $USER $SHELL"'), python=python, env={}, inherit_env=True)
    assert attempt.begin(env={"SHELL": "/bin/mine"}).wait(90) == 0
    account = pwd.getpwuid(os.getuid())
    assert attempt.text() == f"{account.pw_dir} {account.pw_name} /bin/mine\n"


def test_a_run_is_warned_saves_and_says_so(new_attempt: NewAttempt, tmp_path: Path, python: str) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (checkpoints / "model").write_text("some")
    rule = {"signal": "USR1", "grace": 60, "directory": str(checkpoints)}

    def play(limit: int) -> Attempt:
        return new_attempt([*python_job(SAVES), str(checkpoints)], python=python, time_limit=limit, checkpoint=rule)

    attempt, limit = given_time(6, play, lambda attempt: attempt.run()["signal"] is None)
    record = attempt.record()
    assert (record["ending"], record["exit_code"], record["checkpoint_changed"]) == ("timeout", 0, True)
    assert record["wall_time"] >= limit * 0.75, "the warning comes a quarter of the limit before it"
    assert attempt.text() == "helper lives\n"


def test_a_run_that_saved_nothing_says_that(new_attempt: NewAttempt, tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (checkpoints / "old").write_text("x")
    rule = {"signal": "USR1", "grace": 1, "directory": str(checkpoints)}
    record = new_attempt(["sleep", "60"], time_limit=1, checkpoint=rule).run()
    assert (record["ending"], record["checkpoint_changed"]) == ("timeout", False)
