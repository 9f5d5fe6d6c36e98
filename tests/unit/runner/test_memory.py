from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from runyard.runner import memory, tree

GB = 1 << 30


def process(rss: int) -> tree.Process:
    """One whose number no process can have, so that only its RSS is known."""
    return tree.Process(
        pid=2**22 + 1, name="python3", state="R", parent=1, session=1, ticks=0, threads=1, start_time=0, rss=rss
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KB"),
        (100 << 20, "100 MB"),
        (5 * GB, "5.0 GB"),
        (2000 << 40, "2000 TB"),
    ],
)
def test_sizes_are_shown(size: int, text: str) -> None:
    assert memory.shown(size) == text


@pytest.fixture
def own() -> tree.Process:
    found = tree.look(os.getpid())
    assert found is not None
    return found


@pytest.fixture
def small() -> Iterator[tree.Process]:
    """Measured in no time, unlike the process of a whole test run."""
    with subprocess.Popen(["sleep", "600"]) as process:
        found = tree.look(process.pid)
        assert found is not None
        yield found
        process.kill()


def test_the_judge_looks_closer_the_less_room_there_is(small: tree.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SHARE", 0)  # where looking takes long, as on a busy machine, it is done less often
    delays = []
    for limit in (100 * GB, small.rss + GB, small.rss + (10 << 20)):
        judge = memory.MeasuredLimit(limit)
        assert judge.verdict([small]) is None
        delays.append(judge.delay)
    assert delays[0] == 0.5
    assert delays[0] > delays[1] > delays[2]


def test_the_kernel_s_own_count_is_the_judge(own: tree.Process) -> None:
    pss = memory.total_pss([own])
    assert 0 < pss <= own.rss * 1.2
    message = memory.MeasuredLimit(1 << 20).verdict([own])
    assert message is not None
    assert "of the 1.0 MB granted" in message
    assert own.name in message
    assert memory.MeasuredLimit(pss * 4).verdict([own]) is None


def test_a_peak_of_one_process_is_its_rss() -> None:
    meter = memory.Meter()
    for rss in (10, 30, 20):
        meter.see([process(rss << 20)])
    assert meter.peak == 30 << 20
