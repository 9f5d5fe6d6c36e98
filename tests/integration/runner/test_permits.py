"""A run that lives by a permit ends by itself when it is not renewed, whatever its runner was doing meanwhile."""

from __future__ import annotations

import os
import signal

from runyard.runner import kernel
from runyard.runner.supervisor import Attendant
from tests.integration.runner.attempts import DAEMON, Attempt, NewAttempt, given_time, lives, python_job, until
from tests.integration.runner.test_endings import HONOURS, IGNORES

MESSAGE = "its permit ran out: no word from its agent for 60 s"
PERMIT = {"seconds": 60}
SOON_S = 6  # long enough for a run to begin on a busy machine
QUIET = {"beat": 600, "sample": 600}  # nothing else wakes the runner


def allow(attempt: Attempt, seconds: float) -> float:
    """Until when."""
    ends = kernel.uptime() + seconds
    Attendant().renew(os.fsencode(attempt.directory), ends)
    return ends


def test_it_runs_out_and_the_whole_tree_is_gone(new_attempt: NewAttempt, python: str) -> None:
    def play(seconds: int) -> Attempt:
        stop = {"signal": "TERM", "grace": seconds / 3}
        attempt = new_attempt(python_job(DAEMON + IGNORES), python=python, permit=PERMIT, stop=stop, **QUIET)
        allow(attempt, seconds)
        attempt.begin()
        return attempt

    attempt, _ = given_time(SOON_S, play, lambda attempt: attempt.record() and attempt.text())
    pids = attempt.pids("daemon", "ready")
    record = attempt.record()
    assert (record["ending"], record["message"], record["tree_gone"]) == ("lost", MESSAGE, True)
    assert attempt.text() == f"got {signal.SIGTERM:d}\n", "it was asked first"
    assert not any(map(lives, pids))


def test_a_renewed_one_lives(new_attempt: NewAttempt) -> None:
    """It is read at its end at the latest. A stop is heard as ever."""
    attempt = new_attempt(python_job(HONOURS), permit=PERMIT, **QUIET)
    ends = allow(attempt, SOON_S)
    attempt.begin()
    attempt.wait_for("ready")
    allow(attempt, 600)
    until(lambda: kernel.uptime() > ends + 1)
    assert (attempt.status() or {})["state"] == "running"
    Attendant().stop(os.fsencode(attempt.directory), "user", 60, 0)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == ("stopped", "user", 5)


def test_a_runner_that_was_stopped_ends_its_run_when_it_wakes(new_attempt: NewAttempt) -> None:
    """At once: the time that the run had to end by itself is over. A renewal that came too late changes nothing."""
    attempt = new_attempt(python_job(IGNORES), permit=PERMIT, stop={"signal": "TERM", "grace": 1}, **QUIET)
    ends = allow(attempt, SOON_S)
    runner = attempt.begin()
    (pid,) = attempt.pids("ready")
    runner.send_signal(signal.SIGSTOP)
    until(lambda: kernel.uptime() > ends + 2)
    allow(attempt, 600)
    assert lives(pid)
    runner.send_signal(signal.SIGCONT)
    record = attempt.record()
    assert (record["ending"], record["signal"]) == ("lost", signal.SIGKILL)
    assert not lives(pid)


def test_a_start_that_was_too_long_on_its_way_does_not_begin(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job("open('begun', 'w')"), python=python, permit=PERMIT)
    allow(attempt, -1)
    record = attempt.run()
    assert (record["ending"], record["message"], record["child"]) == ("lost", MESSAGE, None)
    assert not (attempt.work / "begun").exists()


def test_without_any_permit_it_does_not_begin(new_attempt: NewAttempt) -> None:
    assert new_attempt(["true"], permit=PERMIT).run()["ending"] == "lost"
