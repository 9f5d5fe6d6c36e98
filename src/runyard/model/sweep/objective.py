"""What a sweep is after: a metric that is to become small, or large."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model import fields, metrics
from runyard.model.declaration import Declared, Field, Option, field, read
from runyard.model.json_schema import text
from runyard.model.values import Checked, Choice


class Goal(enum.StrEnum):
    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class At(enum.StrEnum):
    """Which of a run's values counts."""

    LAST = "last"
    BEST = "best"


def _metric(value: object, where: str) -> str:
    """As it is kept when a run reports it."""
    try:
        return metrics.name_of(fields.text(value, where, metrics.LONGEST_NAME, raw=True))
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message, "name what the runs report, such as val/loss") from None


METRIC = text(minLength=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective(Declared):
    place: ClassVar[str] = "objective"

    metric: str = field(Checked(_metric, METRIC), help="As runs report it", missing="name the metric: minimize: loss")
    goal: Goal = field(Choice(Goal), default=Goal.MINIMIZE, help="Minimize or maximize the metric")
    at: At = field(Choice(At), default=At.LAST, help="Which of a run's values counts")

    @classmethod
    def parse(cls, value: object, where: str = "") -> Objective:
        if isinstance(value, str):
            raise errors.InvalidInput(
                "objective: it does not say whether to minimize or maximize the metric",
                f"write minimize: {value[:50]} or maximize: {value[:50]}",
            )
        return cls(**read(cls, value, where))

    def order(self, value: float) -> float:
        """Small is good: what to sort by."""
        if value != value:
            return float("inf")
        return value if self.goal is Goal.MINIMIZE else -value


def _short(goal: Goal) -> Field:
    """The metric alone: `minimize: val/loss`."""
    value = Checked(lambda value, where: Objective(metric=_metric(value, where), goal=goal), METRIC)
    return Field(value=value, help=f"Metric to {goal}", option=Option(f"--{goal}", "METRIC"))


SHORT = {goal.value: _short(goal) for goal in Goal}
