"""(n) From the submit to the first byte that the run's process writes, on an idle node that the yard drives over ssh.

Against `ssh node command`, from the moment when ssh is started to the same byte. The submit is one request of a client
that is connected; the yard's connection to the node is open too, as it is as long as the site is served.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench import harness, node_sides
from bench.harness import Result
from bench.node_sides import SITE
from bench.pipe import Pipe

STARTS, MOST_MS = 40, 150
PAUSE_S = 0.1  # at least so long nothing happens before a start


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("n", "sshd"):
        return
    with node_sides.node(place) as node, Pipe(place / "started-there") as begun:
        client = node.yard.client()

        def by_runyard() -> float:
            begin = _after_a_pause()
            run = client.submit(["sh", "-c", begun.command], site=SITE, cwd="/", code=False)
            taken = begun.wait() - begin
            run.wait(60)
            return taken

        def by_ssh() -> float:
            begin = _after_a_pause()
            with subprocess.Popen(node.ssh(begun.command), stdin=subprocess.DEVNULL):
                return begun.wait() - begin

        taken = harness.interleaved(STARTS, {"runyard": by_runyard, "ssh": by_ssh})
    overhead = 1000 * (taken["runyard"] - taken["ssh"])
    yield Result(
        letter="n",
        what=f"submit to the first byte of its process on a node, median of {STARTS}: {overhead:+.0f} ms",
        value=1000 * taken["runyard"],
        against="`ssh node command`",
        alternative=1000 * taken["ssh"],
        unit="ms",
        target=f"under {MOST_MS} ms more",
        met=overhead < MOST_MS,
    )


def _after_a_pause() -> float:
    time.sleep(PAUSE_S * random.uniform(1, 2))
    return time.monotonic()
