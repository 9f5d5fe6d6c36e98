"""(g) How long `runyard --help` and `runyard ls` take, against an interpreter that does nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import harness
from bench.harness import Result

REPETITIONS = 15


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=1) as yard:
        yard.client().submit_many([{"command": ["/bin/true"], "cwd": "/"}] * 50)
        program = str(Path(sys.executable).parent / "runyard")
        taken = harness.interleaved(
            REPETITIONS,
            {
                "--help": lambda: harness.seconds([program, "--help"], env=yard.env),
                "ls": lambda: harness.seconds([program, "ls"], env=yard.env),
                "nothing": lambda: harness.seconds([sys.executable, "-c", "pass"]),
            },
        )
    for word in ("--help", "ls"):
        yield Result(
            letter="g",
            what=f"`runyard {word}`",
            value=1000 * taken[word],
            against="`python -c pass`",
            alternative=1000 * taken["nothing"],
            unit="ms",
        )
