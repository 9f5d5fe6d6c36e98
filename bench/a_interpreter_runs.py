"""(a) 1,000 runs of `python -c pass` through two slots, fully recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import short_runs
from bench.harness import Result


def measure(place: Path) -> Iterator[Result]:
    rate = short_runs.rates("a", place, [sys.executable, "-c", "pass"], repetitions=3)
    targets = {"xargs": ("at least 0.6", 0.6), "parallel": ("more than 1", 1)}
    for against, (target, least) in targets.items():
        if against not in rate:
            continue
        yield Result(
            letter="a",
            what="1,000 runs of `python -c pass`, 2 slots",
            value=rate["runyard"],
            against=f"{against} with 2 at a time",
            alternative=rate[against],
            unit="runs/s",
            target=target,
            met=rate["runyard"] > least * rate[against],
        )
