"""(f) Memory of the yard's process with 9,998 runs queued and 2 running, against the same yard when idle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench import harness
from bench.harness import Result
from tests.labs.yard import Yard

LIMIT_MB, RUNS = 200, 10_000


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=2) as yard:
        idle = resident_mb(yard)
        client = yard.client()
        client.submit_many([{"command": ["sleep", "1000"], "cwd": "/"}] * RUNS)
        while client.health()["runs"].get("running", 0) < 2:
            time.sleep(0.1)
        highest = max(_sample(yard) for _ in range(50))
    yield Result(
        letter="f",
        what="resident memory with 9,998 queued and 2 running",
        value=highest,
        against="idle",
        alternative=idle,
        unit="MB",
        target=f"under {LIMIT_MB} MB",
        met=highest < LIMIT_MB,
    )


def _sample(yard: Yard) -> float:
    time.sleep(0.1)
    return resident_mb(yard)


def resident_mb(yard: Yard) -> float:
    return float(psutil.Process(yard.pid).memory_info().rss) / (1 << 20)
