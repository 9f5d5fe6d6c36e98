"""(m) A result of 1 GB from a run on a node: `runyard fetch`, against scp from the node's sshd.

The run is over, and its output is at the yard, from where it is fetched and checked. scp copies the same bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from bench import harness, node_sides
from bench.harness import Result
from bench.node_sides import SITE, Node

MEGABYTES, REPETITIONS, MOST = 1000, 3, 1.5


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("m", "sshd"):
        return
    with node_sides.node(place) as node:
        source = node.place / "result.bin"
        node_sides.write_random(source, MEGABYTES * 10**6)
        source.chmod(0o644)
        run = _run_with_output(node, source)
        taken = harness.interleaved(
            REPETITIONS,
            {
                "fetch": lambda: _seconds(
                    node.yard.command("fetch", "-q", str(run), "-o", str(place / "here")), node, place
                ),
                "scp": lambda: _seconds(node.scp(source, place / "here" / "result.bin"), node, place),
            },
        )
    yield Result(
        letter="m",
        what=f"{MEGABYTES:,} MB from a run that is over, median of {REPETITIONS}",
        value=taken["fetch"],
        against="`scp`",
        alternative=taken["scp"],
        unit="s",
        target=f"within {MOST}×",
        met=taken["fetch"] <= MOST * taken["scp"],
    )


def _run_with_output(node: Node, source: Path) -> int:
    copy = ["sh", "-c", f'cp {source} "$OUTPUT_DIR"']
    run = node.yard.client().submit(copy, site=SITE, cwd="/", code=False).wait(300)
    assert run.state == "succeeded", run.data
    return int(run.id)


def _seconds(command: list[str], node: Node, place: Path) -> float:
    """Into an empty folder."""
    here = place / "here"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    return harness.seconds(command, env=node.yard.env)
