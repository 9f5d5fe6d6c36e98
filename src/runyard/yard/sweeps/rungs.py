"""Early stopping: which trials continue at a rung. Pure: from the rule, the objective and the history alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.model.metrics import Point, step_of, to_json
from runyard.model.sweep.objective import Objective
from runyard.model.sweep.statistics import Estimate, estimate, mean
from runyard.model.sweep.stopping import Rule, Stopping
from runyard.yard.sweeps.decision_log import Decision, DecisionKind, History

_SHARES = {2: "half", 3: "third", 4: "quarter", 5: "fifth"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """The first value of a run at or beyond a rung."""

    rung: int
    step: float
    value: float


def reached(stopping: Stopping, height: int, steps: Iterable[tuple[float, float]]) -> list[Reached]:
    """Rungs above `height` that these (step, value) come to. A run that skips rungs is compared at the last of them: a
    value from a later step would have an advantage at the others."""
    found = []
    for step, value in steps:
        rung = stopping.rung(step)
        if rung is not None and rung > height:
            found.append(Reached(rung=rung, step=step, value=value))
            height = rung
    return found


def numbered(points: Sequence[Point], count: int, *, has_steps: bool) -> list[tuple[float, float]]:
    """Steps and values of one metric. Where a program names no steps they are counted; `count`: with these points.
    Where it does (`has_steps`), a value without one is a summary, not a further step."""
    if has_steps:
        return [(float(point.step), point.value) for point in points if point.step is not None]
    return [(float(number), point.value) for number, point in enumerate(points, count - len(points) + 1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """The state of a run and its trial when a rung is recorded, besides the value there."""

    newest: float  # the last step that the run has reported by then
    awaited: int  # other repetitions of the trial that may yet come to the rung
    over: bool  # all runs of the trial have ended


def rung(trial: int, run_id: int, metric: str, found: Reached, standing: Standing) -> Decision:
    value = {"rung": found.rung, "metric": metric, "step": step_of(found.step), "value": to_json(found.value)}
    stands = {"newest": step_of(standing.newest), "awaited": standing.awaited, "over": standing.over}
    return Decision(kind=DecisionKind.RUNG, trial=trial, run_id=run_id, body={**value, **stands})


def judge(
    sweep: int, stopping: Stopping, objective: Objective, history: History, seen: Decision
) -> Decision | None:  # fmt: skip
    """Whether the trial of the run that has just reached a rung is stopped there. `history` includes that rung."""
    rung_number, step = seen.body["rung"], seen.body["step"]
    if seen.trial in history.stopped or seen.body["over"] or is_through(stopping, history, seen.body["newest"]):
        return None
    there = history.rungs[rung_number]
    own = estimate(list(there[seen.trial].values()))
    assert own is not None, "it has just come there"
    others = [mean(list(runs.values())) for trial, runs in there.items() if trial != seen.trial]
    bound = _RULES[stopping.rule](stopping, objective, own.mean, others)
    if bound is None or not _is_worse(objective, own, bound, seen.body["awaited"]):
        return None
    numbers = {"value": own.mean, "low": own.low, "high": own.high, "bound": bound}
    body = {
        "rung": rung_number, "step": step, **{name: to_json(number) for name, number in numbers.items()}, "n": own.n,
        "of": len(there), "detail": _detail(sweep, stopping, objective, step, own.mean, bound),
    }  # fmt: skip
    return Decision(kind=DecisionKind.STOP, trial=seen.trial, body=body)


def is_through(stopping: Stopping, history: History, newest: float | None) -> bool:
    """Whether a run has reached the configured last step, or a step at which others have ended by themselves: then it
    is no longer stopped."""
    if newest is None:
        return False
    return newest in history.ends or (stopping.last is not None and newest >= stopping.last)


def _is_worse(objective: Objective, own: Estimate, bound: float, awaited: int) -> bool:
    """By the mean of all repetitions; while some are awaited, only if even the better end of the interval is worse. A
    NaN mean stays NaN, whatever the others report."""
    if not awaited or math.isnan(own.mean):
        return objective.order(own.mean) > objective.order(bound)
    ends = [objective.order(end) for end in (own.low, own.high) if end is not None]
    return bool(ends) and min(ends) > objective.order(bound)


def _asha(stopping: Stopping, objective: Objective, own: float, others: Sequence[float]) -> float | None:
    values = sorted([own, *others], key=objective.order)
    return values[max(1, len(values) // stopping.factor) - 1] if len(values) >= stopping.trials else None


def _median(stopping: Stopping, objective: Objective, own: float, others: Sequence[float]) -> float | None:
    numbers = [value for value in others if not math.isnan(value)]
    return statistics.median(numbers) if len(others) >= stopping.trials and numbers else None


_RULES: dict[Rule, Any] = {Rule.ASHA: _asha, Rule.MEDIAN: _median}


def _detail(sweep: int, stopping: Stopping, objective: Objective, step: float, own: float, bound: float) -> str:
    share = _SHARES.get(stopping.factor, f"1/{stopping.factor}")
    than = "the median" if stopping.rule is Rule.MEDIAN else f"the best {share}"
    return (
        f"stopped by sweep S{sweep} at step {step}: {objective.metric} {own:.4g}, worse than {than} ({bound:.4g})"
    )  # fmt: skip
