from __future__ import annotations

import pytest

from runyard.runner import memory, tree

GB = 1 << 30


def process(rss: int, pid: int = 2**22 + 1) -> tree.Process:
    """One whose number no process can have, so that only its RSS is known."""
    return tree.Process(
        pid=pid, name="python3", state="R", parent=1, session=1, ticks=0, threads=1, start_time=0, rss=rss
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


def test_the_judge_looks_closer_the_less_room_there_is() -> None:
    judge = memory.Measured(16 * GB)
    delays = []
    for used in (1 * GB, 15 * GB, 16 * GB - (300 << 20), 16 * GB - (1 << 20)):
        judge.verdict([process(used)])
        delays.append(judge.delay)
    assert delays == sorted(delays, reverse=True)
    assert delays[0] <= 0.5
    assert delays[-1] < 0.1


def test_the_kernel_s_own_count_is_the_judge(tmp_path: object) -> None:
    import os

    own = tree.look(os.getpid())
    assert own is not None
    pss = memory.total_pss([own])
    assert 0 < pss <= own.rss * 1.2
    message = memory.Measured(1 << 20).verdict([own])
    assert message is not None
    assert "of the 1.0 MB granted" in message
    assert own.name in message
    assert memory.Measured(pss * 4).verdict([own]) is None


def test_a_peak_of_one_process_is_its_rss() -> None:
    meter = memory.Meter()
    for rss in (10, 30, 20):
        meter.see([process(rss << 20)])
    assert meter.peak == 30 << 20
