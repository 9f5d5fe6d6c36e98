"""When a run is stopped before its end, because others were better by then.

Runs are compared at rungs: at the step `first`, at `factor` times that many steps, and so on.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields

LARGEST_FACTOR = 100
LARGEST = 1e15  # step


class Rule(enum.StrEnum):
    ASHA = "asha"  # at each rung the best 1/factor go on
    MEDIAN = "median"  # at each rung those go on that are not worse than the median


_FACTOR = {Rule.ASHA: 3, Rule.MEDIAN: 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopping:
    rule: Rule
    first: float = 1  # the step of the first rung
    factor: int = 3  # from one rung to the next
    least: int = 0  # trials that must have reached a rung before anything is stopped there
    last: float | None = None  # the step at which a run is through; None: where others are seen to end by themselves

    @classmethod
    def parse(cls, value: object) -> Stopping:
        given = {"rule": value} if isinstance(value, str) else fields.mapping(value, "stop", _FIELDS)
        rule = Rule(fields.one_of(given.get("rule"), "stop", Rule))
        factor = fields.integer(given.get("factor", _FACTOR[rule]), "stop.factor", 2, LARGEST_FACTOR)
        default = factor if rule is Rule.ASHA else 5
        least = fields.integer(given.get("trials", default), "stop.trials", 2, 100_000)
        first = _step(given.get("first", 1), "first")
        last = None if given.get("last") is None else _step(given["last"], "last")
        if last is not None and last < first:
            raise errors.InvalidInput(f"stop.last: {last} is before the first step at which to compare, {first}")
        return cls(rule=rule, first=first, factor=factor, least=least, last=last)

    def to_json(self) -> dict[str, Any]:
        last = {} if self.last is None else {"last": self.last}
        return {"rule": self.rule.value, "first": self.first, "factor": self.factor, "trials": self.least, **last}

    def rung(self, step: float) -> int | None:
        """The number of the highest rung at or below a step, counted from 0; None: below the first."""
        if step < self.first:
            return None
        number = int(math.log(step / self.first) / math.log(self.factor))
        # A logarithm may be off by the last bit, just where it matters.
        while self.first * self.factor ** (number + 1) <= step:
            number += 1
        while number and self.first * self.factor**number > step:
            number -= 1
        return number

    def step(self, rung: int) -> float:
        return float(self.first * self.factor**rung)


def split(value: object) -> tuple[object, dict[str, Any] | None]:
    """`stop` of a document: the sweep's rule, and what a run's own field of that name says (signal, grace)."""
    if not isinstance(value, Mapping):
        return value, None
    own = {name: item for name, item in value.items() if name in ("signal", "grace")}
    rule = {name: item for name, item in value.items() if name not in own}
    return rule or None, own or None


def _step(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
        raise errors.InvalidInput(f"stop.{name}: {value!r} is not a step", _MEANT[name])
    return value


_MEANT = {"first": "name the first step at which to compare", "last": "name the step at which a run is through"}
_FIELDS = ("rule", "first", "factor", "trials", "last")
