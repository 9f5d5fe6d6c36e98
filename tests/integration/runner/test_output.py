"""What a run prints is in its files, to the byte; what it used is in the samples."""

from __future__ import annotations

import hashlib
import signal
import time

from tests.integration.runner.attempts import NewAttempt, python_job, shell_job, until

NOISE = "import os, sys; sys.stdout.buffer.write(bytes(range(256)) * 100)"
LONG_LINE = "import sys\nfor _ in range(100): sys.stdout.buffer.write(b'x' * (1 << 20))"


def test_any_bytes_pass(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(NOISE))
    assert attempt.run()["sizes"] == {"log": 25600}
    assert (attempt.directory / "log").read_bytes() == bytes(range(256)) * 100


def test_a_line_of_100_mb_passes(new_attempt: NewAttempt) -> None:
    for split in (False, True):
        attempt = new_attempt(python_job(LONG_LINE), split_output=split)
        record = attempt.run()
        assert record["exit_code"] == 0
        assert record["sizes"]["log"] == 100 << 20
        with open(attempt.directory / "log", "rb") as file:
            assert hashlib.file_digest(file, "sha256").digest() == hashlib.sha256(b"x" * (100 << 20)).digest()


def test_streams_are_kept_apart_and_merged(new_attempt: NewAttempt, python: str) -> None:
    job = "for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.25; done; printf tail; exit 3"
    attempt = new_attempt(shell_job(job), python=python, split_output=True)
    record = attempt.run()
    assert record["exit_code"] == 3
    assert attempt.text("stdout") == "out 1\nout 2\nout 3\ntail"
    assert attempt.text("stderr") == "err 1\nerr 2\nerr 3\n"
    assert sorted(attempt.text("log").split("\n")) == ["err 1", "err 2", "err 3", "out 1", "out 2", "out 3", "tail"]
    sizes = {name: len(attempt.text(name)) for name in ("log", "stdout", "stderr", "usage.jsonl")}
    assert record["sizes"] == sizes


def test_merged_lines_stay_whole(new_attempt: NewAttempt) -> None:
    """Lines that come in pieces, from two processes at once."""
    code = """
import os, sys, time
stream = sys.stdout if os.fork() else sys.stderr
for number in range(200):
    for piece in ("%s " % stream.name, "%d " % number, "end\\n"):
        stream.write(piece)
        stream.flush()
        time.sleep(0.001)
if stream is sys.stdout:
    os.wait()
"""
    attempt = new_attempt(python_job(code), split_output=True)
    assert attempt.run()["exit_code"] == 0
    lines = attempt.text("log").splitlines()
    assert sorted(lines) == sorted(f"<{name}> {number} end" for name in ("stdout", "stderr") for number in range(200))


def test_an_unfinished_line_is_shown_while_it_waits(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("printf 'password: '; exec sleep 600"), split_output=True)
    runner = attempt.begin()
    until(lambda: (attempt.directory / "log").exists() and attempt.text() == "password: ")
    attempt.control(stop={"reason": "user", "grace": 0})
    runner.send_signal(signal.SIGUSR2)
    assert attempt.record()["ending"] == "stopped"


def test_what_the_job_leaves_beside_the_log_is_counted(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("echo '{}' > ../metrics.jsonl"))
    assert attempt.run()["sizes"] == {"log": 0, "metrics.jsonl": 3}


BUSY = """
import os, threading, time
def spin(until):
    while time.monotonic() < until:
        pass
threading.Thread(target=time.sleep, args=(1.5,)).start()
if os.fork() == 0:
    held = b"x" * (30 << 20)
    time.sleep(1.5)
    os._exit(0)
spin(time.monotonic() + 1.2)
os.wait()
"""


def test_usage_is_sampled(new_attempt: NewAttempt, python: str) -> None:
    before = time.time()
    attempt = new_attempt(python_job(BUSY), python=python, sample=0.2)
    record = attempt.run()
    samples = attempt.samples()
    assert len(samples) >= 4
    for sample in samples:
        assert list(sample) == ["t", "cpu", "threads", "processes", "rss", "gpus"]
        assert before <= sample["t"] <= time.time()
        assert sample["gpus"] == []
    assert max(sample["processes"] for sample in samples) == 2
    assert max(sample["threads"] for sample in samples) >= 3
    assert max(sample["rss"] for sample in samples) > 30 << 20
    assert max(sample["cpu"] for sample in samples) > 0.3

    assert record["cpu_time"] > 0.3
    assert record["peak_memory"] > 30 << 20


def test_a_short_run_has_no_samples(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(["true"])
    assert "usage.jsonl" not in attempt.run()["sizes"]
