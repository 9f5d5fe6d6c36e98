"""Shared by (a) and (b): many short commands through two slots, by runyard, xargs and GNU parallel."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from bench import harness
from runyard import Client
from tests.labs.yard import Yard

COUNT = 1000
SLOTS = 2
LOOK_S = 1.0


def rates(letter: str, place: Path, command: list[str], repetitions: int) -> dict[str, float]:
    """Commands per second of each; where GNU parallel is not installed, that is told."""
    words = shlex.join(command)
    with harness.yard(place, cpus=SLOTS) as yard:
        candidates = {
            "runyard": lambda: COUNT / by_runyard(yard, command),
            "xargs": lambda: COUNT / harness.seconds(f"seq {COUNT} | xargs -P{SLOTS} -n1 {words}"),
            "parallel": lambda: COUNT / harness.seconds(f"seq {COUNT} | parallel --will-cite -j{SLOTS} {words}"),
        }
        if harness.lacks(f"{letter}, against GNU parallel", "GNU parallel"):
            del candidates["parallel"]
        return harness.interleaved(repetitions, candidates)


def by_runyard(yard: Yard, command: list[str]) -> float:
    """From the call that submits all to the moment when all are recorded as succeeded."""
    client = yard.client()
    before = _succeeded(client)
    begin = time.perf_counter()
    client.submit_many([{"command": command, "cwd": "/"} for _ in range(COUNT)])
    while (left := before + COUNT - _succeeded(client)) > 0:
        time.sleep(max(0.02, LOOK_S * left / COUNT))  # to look costs the yard something, too
    return time.perf_counter() - begin


def _succeeded(client: Client) -> int:
    counts = client.health()["runs"]
    if counts.get("failed") or counts.get("cancelled"):
        raise SystemExit(f"some runs did not succeed: {counts}")
    return int(counts.get("succeeded", 0))
