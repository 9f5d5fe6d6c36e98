"""What a sweep is after: a metric that is to become small, or large."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, metrics


class Goal(enum.StrEnum):
    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class At(enum.StrEnum):
    """Which of a run's values counts."""

    LAST = "last"
    BEST = "best"


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    metric: str
    goal: Goal = Goal.MINIMIZE
    at: At = At.LAST

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Objective | None:
        """From `minimize`, `maximize` or `objective`, of which a document has one at most."""
        named = [name for name in ("minimize", "maximize", "objective") if given.get(name) is not None]
        if not named:
            return None
        if len(named) > 1:
            raise errors.InvalidInput(f"{named[1]}: there is {named[0]} already", "a sweep is after one metric")
        value = given[named[0]]
        return cls._long(value) if named[0] == "objective" else cls(metric=_metric(value), goal=Goal(named[0]))

    @classmethod
    def _long(cls, value: object) -> Objective:
        if isinstance(value, str):
            raise errors.InvalidInput(
                "objective: it does not say whether the metric is to become small or large",
                f"write minimize: {value[:50]} or maximize: {value[:50]}",
            )
        given = fields.mapping(value, "objective", ("metric", "goal", "at"))
        return cls(
            metric=_metric(given.get("metric")),
            goal=Goal(fields.one_of(given.get("goal", Goal.MINIMIZE), "objective.goal", Goal)),
            at=At(fields.one_of(given.get("at", At.LAST), "objective.at", At)),
        )

    def to_json(self) -> dict[str, Any]:
        return {"metric": self.metric, "goal": self.goal.value, "at": self.at.value}

    def order(self, value: float) -> float:
        """Small is good: what to sort by."""
        if value != value:
            return float("inf")
        return value if self.goal is Goal.MINIMIZE else -value


def _metric(value: object) -> str:
    """As it is kept when a run reports it."""
    try:
        return metrics.name_of(fields.text(value, "objective: its metric", metrics.LONGEST_NAME, raw=True))
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message, "name what the runs report, such as val/loss") from None
