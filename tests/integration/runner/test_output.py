"""What a run prints is in its files, to the byte; what it used is in the samples."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

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
    present = [name for name in ("log", "stdout", "stderr", "usage.jsonl") if (attempt.directory / name).exists()]
    assert record["sizes"] == {name: len(attempt.text(name)) for name in present}


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
    attempt.wait_for_text("password: ")
    attempt.control(stop={"reason": "user", "grace": 0})
    runner.send_signal(signal.SIGUSR2)
    assert attempt.record()["ending"] == "stopped"


def test_what_the_job_leaves_beside_the_log_is_counted(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(shell_job("echo '{}' > ../metrics.jsonl"))
    assert attempt.run()["sizes"] == {"log": 0, "metrics.jsonl": 3}


BUSY = """
import os, threading, time
def last():
    while not os.path.exists("enough"):
        time.sleep(0.05)
threading.Thread(target=last).start()
if os.fork() == 0:
    held = b"x" * (30 << 20)
    last()
    os._exit(0)
while not os.path.exists("enough"):
    pass
os.wait()
"""


def shows_it_all(samples: list[dict[str, Any]]) -> bool:
    return (
        len(samples) >= 4
        and max(sample["threads"] for sample in samples) >= 3
        and max(sample["rss"] for sample in samples) > 30 << 20
        and max(sample["cpu"] for sample in samples) > 0.05  # what a busy machine gives it
    )


def test_usage_is_sampled(new_attempt: NewAttempt, python: str) -> None:
    before = time.time()
    attempt = new_attempt(python_job(BUSY), python=python, sample=0.2)
    attempt.begin()
    until(lambda: shows_it_all(attempt.samples()))
    (attempt.work / "enough").touch()
    record, samples = attempt.record(), attempt.samples()
    for sample in samples:
        assert list(sample) == ["t", "cpu", "threads", "processes", "rss", "gpus"]
        assert before <= sample["t"] <= time.time()
        assert sample["gpus"] == []
    assert max(sample["processes"] for sample in samples) == 2
    assert record["cpu_time"] > 0.05
    assert record["peak_memory"] > 30 << 20


def test_a_short_run_has_no_samples(new_attempt: NewAttempt) -> None:
    record = new_attempt(["true"]).run()
    assert "usage.jsonl" not in record["sizes"] or record["wall_time"] > 0.2


def test_output_goes_to_files_of_the_users_own_and_into_the_log(
    new_attempt: NewAttempt, tmp_path: Path, python: str
) -> None:
    (tmp_path / "out.42").write_text("old\n")
    code = "echo one; echo two >&2; sleep 0.4; echo three"
    attempt = new_attempt(
        shell_job(code), python, stdout=f"{tmp_path}/out.42", stderr=f"{tmp_path}/100%%.%N", open_mode="truncate"
    )
    record = attempt.run()
    node = os.uname().nodename.partition(".")[0]
    assert (tmp_path / "out.42").read_text() == "one\nthree\n"
    assert (tmp_path / f"100%.{node}").read_text() == "two\n"
    assert sorted(attempt.text().splitlines()) == ["one", "three", "two"]
    assert record["sizes"]["log"] == len("one\ntwo\nthree\n")
    assert "stdout" not in record["sizes"]


def test_it_is_written_live(new_attempt: NewAttempt, tmp_path: Path) -> None:
    attempt = new_attempt(shell_job("echo first; sleep 60"), stdout=f"{tmp_path}/out", open_mode="truncate")
    attempt.begin()
    until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text() == "first\n")
    attempt.wait_for_text("first\n")
    attempt.control(stop={"reason": "user", "grace": 1})
    attempt.record()


def test_both_streams_into_one_file_keep_their_order(new_attempt: NewAttempt, tmp_path: Path) -> None:
    code = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
    for stderr in ({}, {"stderr": f"{tmp_path}/both"}):
        attempt = new_attempt(shell_job(code), stdout=f"{tmp_path}/both", open_mode="truncate", **stderr)
        attempt.run()
        lines = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
        assert (tmp_path / "both").read_text() == attempt.text() == lines


def test_a_later_attempt_goes_on_in_its_file(new_attempt: NewAttempt, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("from attempt 1\n")
    attempt = new_attempt(shell_job("echo from attempt 2"), stdout=f"{tmp_path}/out", open_mode="continue")
    attempt.run()
    assert (tmp_path / "out").read_text() == "from attempt 1\nfrom attempt 2\n"
    assert attempt.text() == "from attempt 2\n"


def test_runs_that_share_a_file_append_whole_lines(new_attempt: NewAttempt, tmp_path: Path) -> None:
    """Each prints its lines in pieces, at the same time as the others."""
    (tmp_path / "all").write_text("before\n")
    code = "import sys, time\nfor i in range(40):\n for part in ('task ', sys.argv[1], ' line ', str(i), '\\n'):\n"
    code += "  sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.002)\nsys.stdout.write('last')"
    attempts = [
        new_attempt([*python_job(code), str(task)], stdout=f"{tmp_path}/all", open_mode="append") for task in range(4)
    ]
    for attempt in attempts:
        attempt.begin()
    for attempt in attempts:
        attempt.record()
    lines = (tmp_path / "all").read_text().splitlines()
    expected = [f"task {task} line {i}" for task in range(4) for i in range(40)]
    assert lines[0] == "before"
    assert sorted(lines[1:]) == sorted([*expected, *["last"] * 4])
    assert attempts[2].text() == "".join(f"task 2 line {i}\n" for i in range(40)) + "last"


def test_a_file_that_is_begun_anew_is_followed(new_attempt: NewAttempt, tmp_path: Path) -> None:
    until_copied = "until grep -q {} ../log; do sleep 0.05; done"
    code = f"echo a long first line; {until_copied.format('long')}; echo short > /dev/stdout; "
    code += f"{until_copied.format('short')}; echo end"
    attempt = new_attempt(shell_job(code), stdout=f"{tmp_path}/out", open_mode="truncate")
    attempt.run()
    assert (tmp_path / "out").read_text() == "short\nend\n"
    assert attempt.text() == "a long first line\nshort\nend\n"


def test_two_shared_files_keep_the_streams_apart(new_attempt: NewAttempt, tmp_path: Path) -> None:
    files = {"stdout": f"{tmp_path}/out", "stderr": f"{tmp_path}/err", "open_mode": "append", "split_output": True}
    attempt = new_attempt(shell_job("echo one; echo two >&2"), **files)
    attempt.run()
    assert [(tmp_path / name).read_text() for name in ("out", "err")] == ["one\n", "two\n"]
    assert sorted(attempt.text().splitlines()) == ["one", "two"]
    assert attempt.text("stderr") == "two\n"


def test_what_goes_to_dev_null_is_gone(new_attempt: NewAttempt, tmp_path: Path) -> None:
    attempt = new_attempt(
        shell_job("echo one; echo two >&2"), stdout="/dev/null", stderr=f"{tmp_path}/err", open_mode="truncate"
    )
    attempt.run()
    assert attempt.text() == (tmp_path / "err").read_text() == "two\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nosuch/out", "no such directory: {}/nosuch; make it first"), ("", "is a directory")],
)
def test_a_file_that_cannot_be_opened_is_a_launch_that_failed(
    new_attempt: NewAttempt, tmp_path: Path, path: str, reason: str
) -> None:
    for mode in ("truncate", "append"):
        record = new_attempt(shell_job("true"), stdout=f"{tmp_path}/{path}", open_mode=mode).run()
        assert (record["ending"], record["exit_code"]) == ("launch", None)
        assert record["message"] == f"cannot open the output file {tmp_path}/{path}: {reason.format(tmp_path)}"
