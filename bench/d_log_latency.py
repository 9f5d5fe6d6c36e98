"""(d) From a line printed by the job to the same line in `runyard logs -f`, against `tail -f` of a plain file."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import harness
from bench.harness import Result

LINES, PAUSE_S = 200, 0.05
PRINTER = """
import sys, time
time.sleep(1)
for _ in range(int(sys.argv[1])):
    print(repr(time.time()), flush=True)
    time.sleep(float(sys.argv[2]))
"""


def measure(place: Path) -> Iterator[Result]:
    printer = [sys.executable, "-c", PRINTER, str(LINES), str(PAUSE_S)]
    with harness.yard(place, cpus=1) as yard:
        run = yard.client().submit(command=printer, cwd="/")
        follow = yard.command("logs", str(run.id), "-f")
        delays = arrivals(subprocess.Popen(follow, env=yard.env, stdout=subprocess.PIPE))
    with (place / "plain.log").open("wb") as file:
        process = subprocess.Popen(printer, stdout=file)
        plain = arrivals(subprocess.Popen(["tail", "-n", "+1", "-f", file.name], stdout=subprocess.PIPE))
        process.wait()
    yield Result(
        letter="d",
        what="a printed line reaches `logs -f`, 95th percentile",
        value=1000 * harness.percentile(delays, 0.95),
        against="`tail -f`",
        alternative=1000 * harness.percentile(plain, 0.95),
        unit="ms",
        target="under 300 ms",
        met=harness.percentile(delays, 0.95) < 0.3,
    )


def arrivals(follower: subprocess.Popen[bytes]) -> list[float]:
    """Seconds between the printing of each line, which the line itself tells, and its arrival here."""
    delays = []
    with follower:
        for line in follower.stdout or ():
            delays.append(time.time() - float(line))
            if len(delays) == LINES:
                break
        follower.terminate()
    return delays
