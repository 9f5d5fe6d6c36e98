"""(g) How long `runyard --help`, `runyard ls`, a `runyard check` that finds nothing to do and the import of
`runyard.job` take, against an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import harness
from bench.harness import Result
from tests.labs.yard import Yard

REPETITIONS = 15
TOLD = {"--help": "`runyard --help`", "ls": "`runyard ls`", "check": "`runyard check` where there is nothing to do"}
NOTHING = "import time; print(time.process_time())"
IMPORT = """
import time
begin = time.process_time()
from runyard import job
print(time.process_time() - begin)
"""


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=1) as yard, _without_daemon(place) as idle:
        yard.client().submit_many([{"command": ["/bin/true"], "cwd": "/"}] * 50)
        program = str(Path(sys.executable).parent / "runyard")
        taken = harness.interleaved(
            REPETITIONS,
            {
                "--help": lambda: harness.seconds([program, "--help"], env=yard.env),
                "ls": lambda: harness.seconds([program, "ls"], env=yard.env),
                "check": lambda: harness.seconds([program, "check"], env=idle.env),
                "nothing": lambda: harness.seconds([sys.executable, "-c", "pass"]),
            },
        )
    for word, what in TOLD.items():
        yield Result(
            letter="g",
            what=what,
            value=1000 * taken[word],
            against="`python -c pass`",
            alternative=1000 * taken["nothing"],
            unit="ms",
        )
    yield _import()


@contextmanager
def _without_daemon(place: Path) -> Iterator[Yard]:
    """A yard that is there for as long as a command runs; the first one makes its store."""
    made = Yard(below=place, cpus=1, daemon="no")
    try:
        assert made.cli("check").returncode == 0
        yield made
    finally:
        made.remove()


def _import() -> Result:
    """Of the processor's time: what others do on the machine is no part of it."""
    taken = harness.interleaved(REPETITIONS, {"job": lambda: _printed(IMPORT), "python": lambda: _printed(NOTHING)})
    return Result(
        letter="g",
        what="`from runyard import job`, processor time in a program that has started",
        value=1000 * taken["job"],
        against="the start of that program",
        alternative=1000 * taken["python"],
        unit="ms",
        target="under 30 ms",
        met=taken["job"] < 0.030,
    )


def _printed(program: str) -> float:
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
