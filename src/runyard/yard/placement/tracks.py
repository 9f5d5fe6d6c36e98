"""What a run needs of a node, as a short key: runs with the same key wait in one queue, their track.

An agent looks at the tracks that its node can serve, and at the first runs of those. So what it costs to find work does
not grow with the number of runs that wait for other nodes, and such runs do not hide others.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from runyard.model.declaration import declared
from runyard.model.nodes import Limits, NodeChoice
from runyard.model.resources import Resources
from runyard.model.spec import RunSpec
from runyard.model.values import Size
from runyard.store.site_rows import Node

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
    """Amounts are rounded down to powers of two: a sweep over memory sizes still has only a few tracks."""
    found = {}
    for name, one in declared(Resources).items():
        value = getattr(asked, name)
        is_little = isinstance(one.value, Size) and value is not None and value < COARSE
        if one.track and value != one.default and not is_little:
            found[name] = _power_of_two(value) if isinstance(value, int) else value
    return found


def _power_of_two(amount: int) -> int:
    return 1 << (amount.bit_length() - 1)
