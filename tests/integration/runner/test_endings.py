"""However a run ends, the record says so, and nothing of its tree is alive."""

from __future__ import annotations

import os
import signal
import time

from tests.integration.runner.attempts import (
    DAEMON,
    Attempt,
    NewAttempt,
    given_time,
    lives,
    python_job,
    shell_job,
    until,
)

# Writes its number to `ready`, then does as it is told on SIGTERM.
WAIT = """
import os, signal, sys, time
def on_signal(number, frame):
    print("got", number, flush=True)
    {action}
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGUSR1, on_signal)
with open("ready", "w") as file:
    print(os.getpid(), file=file)
while True:
    time.sleep(0.05)
"""
HONOURS, IGNORES = WAIT.format(action="sys.exit(5)"), WAIT.format(action="pass")


def test_a_daemon_that_ignores_everything_is_gone(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job(DAEMON), python=python)
    attempt.begin()
    (daemon,) = attempt.pids("daemon")
    record = attempt.record()
    assert not lives(daemon)
    assert (record["ending"], record["exit_code"], record["tree_gone"]) == ("exit", 0, True)
    assert record["leftovers"] == 1
    assert record["wall_time"] >= 2  # it was asked first


def test_what_still_writes_may_finish(new_attempt: NewAttempt) -> None:
    """A shell does not wait for a background process: the last lines of its log count too."""
    attempt = new_attempt(shell_job("(while kill -0 $$ 2>/dev/null; do :; done; echo last) & echo first"))
    assert attempt.run()["leftovers"] == 0
    assert attempt.text() == "first\nlast\n"


def test_many_generations_are_gone(new_attempt: NewAttempt) -> None:
    inner = 'trap "" TERM; sleep 600 & sleep 600 & touch up.$$; wait'
    job = f"for i in 1 2 3 4 5; do (trap '' TERM; setsid sh -c '{inner}' &) & done; wait; "
    record = new_attempt(shell_job(job + 'until [ "$(ls | grep -c up)" = 5 ]; do sleep 0.05; done')).run()
    assert record["leftovers"] == 15
    assert record["tree_gone"] is True


def test_a_stop_is_heard_at_once(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job(HONOURS), python=python, beat=600)
    runner = attempt.begin()
    attempt.wait_for("ready")
    attempt.control(stop={"reason": "user", "grace": 60})
    runner.send_signal(signal.SIGUSR2)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == ("stopped", "user", 5)
    assert attempt.text() == f"got {signal.SIGTERM:d}\n"
    assert runner.wait(90) == 0


def test_a_stop_without_a_signal_is_heard_at_the_next_beat(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(HONOURS), beat=0.2)
    attempt.begin()
    attempt.wait_for("ready")
    attempt.control(stop={"reason": "early_stop", "grace": 60})
    record = attempt.record()
    assert (record["ending"], record["stop_reason"]) == ("stopped", "early_stop")


def test_whoever_ignores_a_stop_is_killed_with_all_it_started(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(DAEMON + IGNORES))
    runner = attempt.begin()
    pids = attempt.pids("daemon", "ready")
    attempt.control(stop={"reason": "user", "grace": 0.3})
    runner.send_signal(signal.SIGUSR2)
    status = until(lambda: (status := attempt.status()) and status["ending"] and status)
    assert status["ending"] == "stopped"
    record = attempt.record()
    assert (record["ending"], record["signal"], record["tree_gone"]) == ("stopped", signal.SIGKILL, True)
    assert not any(map(lives, pids))


def test_a_later_stop_may_be_less_patient(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(IGNORES))
    runner = attempt.begin()
    attempt.wait_for("ready")
    for reason, grace in (("user", 600), ("superseded", 0)):
        attempt.control(stop={"reason": reason, "grace": grace})
        runner.send_signal(signal.SIGUSR2)
        until(lambda: (status := attempt.status()) and status["ending"])
        until(attempt.text)
    assert attempt.record()["stop_reason"] == "user"
    assert attempt.text() == f"got {signal.SIGTERM:d}\n"  # told once


def test_the_stop_signal_can_be_chosen_and_wakes_a_sleeper(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(HONOURS), stop={"signal": "USR1", "grace": 60})
    runner = attempt.begin()
    (pid,) = attempt.pids("ready")
    os.kill(pid, signal.SIGSTOP)
    attempt.control(stop={"reason": "user"})
    runner.send_signal(signal.SIGUSR2)
    assert attempt.record()["exit_code"] == 5
    assert attempt.text() == f"got {signal.SIGUSR1:d}\n"


def test_a_stop_that_came_first_prevents_the_run(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("touch ran"))
    attempt.control(stop={"reason": "user", "grace": 1})
    record = attempt.run()
    assert (record["ending"], record["stop_reason"], record["child"]) == ("stopped", "user", None)
    assert not (attempt.work / "ran").exists()


def test_sigterm_to_the_runner_is_a_stop_from_outside(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(HONOURS))
    runner = attempt.begin()
    attempt.wait_for("ready")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        runner.send_signal(number)
    record = attempt.record()
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == ("stopped", "external", 5)


def test_the_time_limit_warns_and_a_warning_is_honoured(new_attempt: NewAttempt) -> None:
    def play(limit: int) -> Attempt:
        return new_attempt(python_job(HONOURS), time_limit=limit, stop={"signal": "TERM", "grace": 60})

    attempt, limit = given_time(10, play, lambda attempt: attempt.run()["signal"] is None)
    record = attempt.record()
    assert (record["ending"], record["exit_code"], record["signal"]) == ("timeout", 5, None)
    assert f"time limit of {limit} seconds" in record["message"]
    assert record["wall_time"] >= limit * 0.9  # the grace is a tenth of the limit, not a minute


def test_a_time_limit_of_one_second_is_told_in_the_singular(new_attempt: NewAttempt) -> None:
    record = new_attempt(shell_job("sleep 60"), time_limit=1).run()
    assert (record["ending"], record["message"]) == ("timeout", "reached its time limit of 1 second")


def test_the_time_limit_ends_whoever_ignores_the_warning(new_attempt: NewAttempt) -> None:
    def play(limit: int) -> Attempt:
        return new_attempt(python_job(DAEMON + IGNORES), time_limit=limit)

    attempt, limit = given_time(10, play, lambda attempt: attempt.run() and attempt.text())
    (daemon,) = attempt.pids("daemon")
    record = attempt.record()
    assert (record["ending"], record["signal"]) == ("timeout", signal.SIGKILL)
    assert attempt.text() == f"got {signal.SIGTERM:d}\n"
    assert not lives(daemon)
    assert record["wall_time"] >= limit


def test_two_runners_one_run(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("echo ran >> runs; sleep 0.3"))
    runners = [attempt.begin() for _ in range(4)]
    assert [runner.wait(90) for runner in runners] == [0, 0, 0, 0]
    assert attempt.record()["ending"] == "exit"
    assert (attempt.work / "runs").read_text() == "ran\n"
    assert len(attempt.text("duplicates").splitlines()) == 3


def test_a_runner_tells_who_it_is_and_that_it_lives(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(["sleep", "600"], beat=0.2)
    runner = attempt.begin()
    until(lambda: (status := attempt.status()) and status["beat"] >= 3)
    status, identity = attempt.status(), attempt.document("started/runner.json")
    assert status is not None and identity is not None
    assert status["state"] == "running"
    assert status["pid"] == identity["pid"] == identity["session"] == runner.pid
    assert os.getsid(status["child"]) == status["child"]
    assert identity["node"] == os.uname().nodename
    attempt.control(stop={"reason": "user", "grace": 0})
    assert attempt.record()["beat"] > status["beat"]


def test_a_killed_runner_takes_the_first_process_with_it(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(IGNORES))
    runner = attempt.begin()
    (pid,) = attempt.pids("ready")
    runner.kill()
    until(lambda: not lives(pid))
    time.sleep(0.2)
    assert (attempt.status() or {}).get("state") != "ended"
