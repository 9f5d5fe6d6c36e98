"""(b) 1,000 runs of `/bin/true` through two slots: what runyard itself costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import short_runs
from bench.harness import Result


def measure(place: Path) -> Iterator[Result]:
    rate = short_runs.rates("b", place, ["/bin/true"], repetitions=3)
    for against in ("xargs", "parallel"):
        if against not in rate:
            continue
        yield Result(
            letter="b",
            what="1,000 runs of `/bin/true`, 2 slots",
            value=rate["runyard"],
            against=f"{against} with 2 at a time",
            alternative=rate[against],
            unit="runs/s",
            target="at least 100 runs/s",
            met=rate["runyard"] >= 100,
        )
