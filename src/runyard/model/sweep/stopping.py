"""When a run is stopped before its end, because others were better by then.

Runs are compared at rungs: at the step `first`, at `factor` times that many steps, and so on.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model.declaration import Declared, field, read
from runyard.model.json_schema import NUMBER
from runyard.model.values import Checked, Choice, Whole

LARGEST_FACTOR = 100
LARGEST = 1e15  # step


class Rule(enum.StrEnum):
    ASHA = "asha"  # at each rung the best 1/factor go on
    MEDIAN = "median"  # at each rung those go on that are not worse than the median


_FACTOR = {Rule.ASHA: 3, Rule.MEDIAN: 2}


def _step(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
        raise errors.InvalidInput(f"{where}: {value!r} is not a step", "name a step that the runs report, such as 10")
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopping(Declared):
    """Build it with `parse`: what is left out depends on the rule."""

    place: ClassVar[str] = "stop"
    short: ClassVar[str] = "rule"

    rule: Rule = field(
        Choice(Rule), help="asha: the best 1/factor continue; median: those not worse than the median do"
    )
    first: float = field(Checked(_step, NUMBER), default=1, help="The step at which runs are first compared")
    factor: int = field(
        Whole(2, LARGEST_FACTOR), default=None,
        help="From one comparison to the next, times so many steps; without it 3 for asha, 2 for median",
    )  # fmt: skip
    trials: int = field(
        Whole(2, 100_000), default=None,
        help="That must have reached a comparison before one is stopped there; without it the factor, 5 for median",
    )  # fmt: skip
    last: float | None = field(
        Checked(_step, NUMBER), default=None, brief=True,
        help="The step from which a run is not stopped any more; without it, where others end by themselves",
    )  # fmt: skip

    @classmethod
    def parse(cls, value: object, where: str = "") -> Stopping:
        found = read(cls, value, where)
        found.setdefault("factor", _FACTOR[found["rule"]])
        found.setdefault("trials", found["factor"] if found["rule"] is Rule.ASHA else 5)
        made = cls(**found)
        if made.last is not None and made.last < made.first:
            raise errors.InvalidInput(
                f"stop.last: {made.last} is before the first step at which to compare, {made.first}"
            )
        return made

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
