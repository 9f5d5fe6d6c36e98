"""Scratch space of real attempts: there while they run, gone after them, whoever dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from runyard.runner import leftovers, supervisor
from tests.integration.runner.attempts import NewAttempt, lives, shell_job, until
from tests.integration.runner.conftest import NewZygote

FILL = 'mkdir -p "$TMPDIR/deep/er"; echo x > "$TMPDIR/deep/er/file"; chmod 0 "$TMPDIR/deep/er" "$TMPDIR/deep"; '
TELL = 'echo "$RUNYARD_SCRATCH" > place; '


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    place = tmp_path / "disk"
    place.mkdir()
    return place


def left(disk: Path) -> list[str]:
    return [path.name for root in disk.iterdir() for path in root.iterdir()]


def test_it_is_there_and_then_it_is_gone(new_attempt: NewAttempt, disk: Path, python: str) -> None:
    job = shell_job(f'{TELL} [ "$TMPDIR" = "$RUNYARD_SCRATCH" ] && [ -d "$TMPDIR" ] && {FILL} exit 5')
    attempt = new_attempt(job, python=python, scratch=str(disk))
    assert attempt.run()["exit_code"] == 5
    assert attempt.wait_for("place").startswith(str(disk / f"runyard-{os.getuid()}" / "42.1-"))
    assert left(disk) == []


def test_what_the_tree_leaves_behind_cannot_keep_it(new_attempt: NewAttempt, disk: Path) -> None:
    """It is removed after the last process is gone, not after the first."""
    attempt = new_attempt(shell_job('cd "$TMPDIR"; (trap "" TERM; while :; do echo x >> f; done) & exit 0'),
                          scratch=str(disk))  # fmt: skip
    attempt.run()
    assert left(disk) == []


def test_a_place_that_cannot_be_used_ends_the_attempt(new_attempt: NewAttempt, tmp_path: Path) -> None:
    record = new_attempt(["true"], scratch=str(tmp_path / "none")).run()
    assert record["ending"] == "launch"
    assert f"no scratch directory can be made in {tmp_path}/none: No such file" in record["message"]


def test_a_program_that_cannot_be_started_leaves_nothing(new_attempt: NewAttempt, disk: Path) -> None:
    assert new_attempt(["/no/such"], scratch=str(disk)).run()["ending"] == "launch"
    assert left(disk) == []


def test_after_a_runner_that_was_killed_the_sweep_removes_it(new_attempt: NewAttempt, disk: Path) -> None:
    attempt = new_attempt(shell_job(f"{FILL} {TELL} sleep 600"), scratch=str(disk))
    runner = attempt.begin()
    attempt.wait_for("place")
    runner.kill()
    runner.wait()
    assert left(disk)
    assert leftovers.sweep(str(attempt.directory))["left"] == 0
    assert left(disk) == []


def test_after_a_runner_that_was_killed_a_look_removes_it(new_attempt: NewAttempt, disk: Path) -> None:
    attempt = new_attempt(shell_job(f"{FILL} {TELL} sleep 600"), scratch=str(disk))
    runner = attempt.begin()
    attempt.wait_for("place")
    runner.kill()
    runner.wait()
    until(lambda: supervisor.Attendant().look(os.fsencode(attempt.directory))["presence"] == supervisor.GONE)
    assert left(disk) == []


def test_the_next_runner_removes_what_one_that_was_killed_left(
    new_attempt: NewAttempt, disk: Path, python: str
) -> None:
    """As on a node of a cluster, where nobody else comes."""
    attempt = new_attempt(shell_job(f"{FILL} {TELL} sleep 600"), python=python, scratch=str(disk))
    living = new_attempt(shell_job(f"{TELL} sleep 600"), scratch=str(disk))
    living.begin()
    living.wait_for("place")
    runner = attempt.begin()
    attempt.wait_for("place")
    runner.kill()
    runner.wait()
    assert new_attempt(["true"], python=python, scratch=str(disk)).run()["exit_code"] == 0
    kept = Path(living.wait_for("place"))
    assert sorted(left(disk)) == sorted([kept.name, f"{kept.name}.owner"])


def test_runs_of_a_zygote_have_it_too(new_attempt: NewAttempt, new_zygote: NewZygote, disk: Path) -> None:
    """One runner for several short runs, each with an empty directory of its own name."""
    zygote = new_zygote()
    places = set()
    for job in ("true", "touch $TMPDIR/x", "chmod 0 $TMPDIR", "true", "true"):
        looks = '[ -z "$(ls -A $TMPDIR)" ] && touch $TMPDIR/w && rm $TMPDIR/w'
        attempt = new_attempt(shell_job(f"{TELL} {looks} && {job}"), scratch=str(disk))
        zygote.start(attempt)
        assert attempt.record()["exit_code"] == 0, attempt.text()
        zygote.notice("ended")
        places.add(attempt.wait_for("place"))
        assert [path for path in left(disk) if path.endswith("x")] == []
    assert len(places) == 5
    zygote.kill()
    until(lambda: left(disk) == [])


def test_a_runner_of_a_zygote_that_was_killed(new_attempt: NewAttempt, new_zygote: NewZygote, disk: Path) -> None:
    attempt = new_attempt(shell_job(f"{TELL} sleep 600"), scratch=str(disk))
    pid = new_zygote().start(attempt)
    attempt.wait_for("place")
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))
    assert leftovers.sweep(str(attempt.directory))["left"] == 0
    assert left(disk) == []
