"""What a run needs of a node, told so briefly that runs which need the same wait in one line: their track.

An agent looks at the tracks that its node can serve, and at the first runs of those. So what it costs to find work does
not grow with the number of runs that wait for other nodes, and they hide nothing from it.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from runyard.model.nodes import Limits, NodeChoice
from runyard.model.resources import Resources
from runyard.model.spec import RunSpec
from runyard.store.places import Node

COARSE = 1 << 30  # bytes: less memory than this every node has


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """Runs of one owner and project that the same nodes could take."""

    lane: str
    choice: NodeChoice
    least: Resources  # what all of them ask for at least

    def suits(self, node: Node, *further: Limits) -> bool:
        owner, _, project = self.lane.partition("/")
        allowed = all(limits.allow(owner, project) for limits in (node.limits, *further))
        return allowed and node.may_run(self.choice) and not node.total.shortages(self.least)


def track(lane: str, spec: RunSpec) -> str:
    needs = {**spec.choice.to_json(), **_coarse(spec.resources)}
    return f"{lane} {json.dumps(needs, sort_keys=True, separators=(',', ':'))}" if needs else lane


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Track:
    lane, _, told = text.partition(" ")  # names have no blanks
    needs: dict[str, Any] = json.loads(told) if told else {}
    asked = {name: value for name, value in needs.items() if name in Resources.__dataclass_fields__}
    return Track(lane=lane, choice=NodeChoice.from_json(needs), least=Resources(**asked))


def _coarse(asked: Resources) -> dict[str, Any]:
    """Amounts are rounded down to powers of two: a sweep over the memory still waits in a handful of tracks."""
    found: dict[str, Any] = {"nodes": 2} if asked.nodes > 1 else {}
    if asked.cpus > 1:
        found["cpus"] = _power_of_two(asked.cpus)
    if asked.memory and asked.memory >= COARSE:
        found["memory"] = _power_of_two(asked.memory)
    if asked.gpus:
        wanted = {"gpus": asked.gpus, "gpu_type": asked.gpu_type, "gpu_memory": asked.gpu_memory}
        found.update({name: value for name, value in wanted.items() if value is not None})
    return found


def _power_of_two(amount: int) -> int:
    return 1 << (amount.bit_length() - 1)
