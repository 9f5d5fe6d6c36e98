"""The memory limit: kept by the kernel where a control group can be made, measured elsewhere, told with numbers."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runner.attempts import NewAttempt, lives, python_job, until

MB = 1 << 20

GREEDY = """
import time
held = []
while True:
    if len(held) < 60:  # whoever judges may be slow, and others need memory, too
        held.append(b"x" * (8 << 20))
        print(len(held), flush=True)
    time.sleep(0.02)
"""

# One process with 96 MB, and four children that share all of it.
SHARING = """
import os, time
held = bytearray(b"x") * (96 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(600)
with open("ready", "w") as file:
    print(os.getpid(), file=file)
time.sleep(600)
"""

WITH_GREEDY_CHILD = f"""
import os, time
if os.fork() == 0:
    exec({GREEDY!r})
with open("ready", "w") as file:
    print(os.getpid(), file=file)
time.sleep(600)
"""

THREE_GREEDY_CHILDREN = f"""
import os
begin, all_are_there = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.close(all_are_there)
        os.read(begin, 1)
        exec({GREEDY!r})
os.close(all_are_there)
os.wait()
"""

WRITES_FILES = """
for i in range(3):
    with open("large%d" % i, "wb") as file:
        for _ in range(80):
            file.write(bytes(1 << 20))
"""


def check_numbers(record: dict[str, Any], limit: int) -> None:
    assert record["ending"] == "oom"
    assert record["signal"] == signal.SIGKILL
    assert record["peak_memory"] >= limit * 0.9
    used, granted = re.findall(r"([\d.]+) MB", record["message"])[:2]
    assert float(granted) == limit / MB
    assert float(used) >= limit * 0.9 / MB


def test_too_much_memory_is_measured(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job(GREEDY), python=python, memory_limit=100 * MB, memory_judge="pss")
    record = attempt.run()
    assert record["memory_judge"] == "pss"
    check_numbers(record, 100 * MB)


def test_the_tree_counts_as_a_whole(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(THREE_GREEDY_CHILDREN), memory_limit=200 * MB, memory_judge="pss")
    record = attempt.run()
    assert record["ending"] == "oom"
    assert "4 processes" in record["message"]


def test_shared_pages_count_once(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(python_job(SHARING), memory_limit=200 * MB, memory_judge="pss", sample=0.1)
    runner = attempt.begin()
    attempt.wait_for("ready")
    # Many looks, each at 480 MB of RSS.
    until(lambda: len([sample for sample in attempt.samples() if sample["processes"] == 5]) > 10)
    assert runner.poll() is None
    attempt.control(stop={"reason": "user", "grace": 0})
    runner.send_signal(signal.SIGUSR2)
    record = attempt.record()
    assert record["ending"] == "stopped"
    assert 96 * MB <= record["peak_memory"] <= 200 * MB


@pytest.mark.component("cgroup memory")
def test_the_kernel_keeps_the_limit(new_attempt: NewAttempt, python: str) -> None:
    attempt = new_attempt(python_job(GREEDY), python=python, memory_limit=100 * MB)
    attempt.begin()
    group = until(lambda: attempt.document("started/runner.json"))["cgroup"]
    record = attempt.record()
    assert record["memory_judge"] == "cgroup"
    check_numbers(record, 100 * MB)
    assert not Path(group).exists()


@pytest.mark.component("cgroup memory")
def test_a_child_killed_by_the_kernel_ends_the_run(new_attempt: NewAttempt) -> None:
    """The first process would wait for ever for what its child was to bring."""
    attempt = new_attempt(python_job(WITH_GREEDY_CHILD), memory_limit=100 * MB)
    attempt.begin()
    (first,) = attempt.pids("ready")
    assert attempt.record()["ending"] == "oom"
    assert not lives(first)


@pytest.mark.component("cgroup memory")
def test_cached_files_are_no_reason(new_attempt: NewAttempt) -> None:
    """A group counts them, and gives them up when memory is short: no oom, and no peak either."""
    record = new_attempt(python_job(WRITES_FILES), memory_limit=100 * MB).run()
    assert (record["ending"], record["exit_code"], record["memory_judge"]) == ("exit", 0, "cgroup")
    assert record["peak_memory"] < 60 * MB


def test_within_the_limit_nothing_happens(new_attempt: NewAttempt) -> None:
    code = "import os, time\nheld = b'x' * (40 << 20)\nwhile not os.path.exists('enough'): time.sleep(0.02)"
    attempt = new_attempt(python_job(code), memory_limit=400 * MB, memory_judge="pss", sample=0.1)
    attempt.begin()
    until(lambda: any(sample["rss"] > 40 * MB for sample in attempt.samples()))
    (attempt.work / "enough").touch()
    record = attempt.record()
    assert (record["ending"], record["exit_code"]) == ("exit", 0)
    assert 40 * MB <= record["peak_memory"] <= 100 * MB
