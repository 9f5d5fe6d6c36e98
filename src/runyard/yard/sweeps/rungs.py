"""Early stopping: which trials go on at a rung. Pure: from the rule, the objective and the history alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.model.metrics import Point, step_of, to_json
from runyard.model.sweep.objective import Objective
from runyard.model.sweep.stopping import Rule, Stopping
from runyard.yard.sweeps.log import Decision, History, Kind

_SHARES = {2: "half", 3: "third", 4: "quarter", 5: "fifth"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """The first value of a run at or beyond a rung."""

    rung: int
    step: float
    value: float


def reached(stopping: Stopping, height: int, steps: Iterable[tuple[float, float]]) -> list[Reached]:
    """Rungs above `height` that these (step, value) come to. Who jumps over rungs is compared at the last of them: a
    value from later on would be too good for the others."""
    found = []
    for step, value in steps:
        rung = stopping.rung(step)
        if rung is not None and rung > height:
            found.append(Reached(rung=rung, step=step, value=value))
            height = rung
    return found


def numbered(points: Sequence[Point], count: int) -> list[tuple[float, float]]:
    """Steps and values of one metric. Where a program names no steps they are counted; `count`: with these points."""
    first = count - len(points) + 1
    return [(float(first + index if point.step is None else point.step), point.value)
            for index, point in enumerate(points)]  # fmt: skip


def rung(trial: int, run_id: int, metric: str, found: Reached, *, over: bool = False) -> Decision:
    """`over`: all runs of the trial had ended when this was read."""
    body = {"rung": found.rung, "metric": metric, "step": step_of(found.step), "value": to_json(found.value)}
    return Decision(kind=Kind.RUNG, trial=trial, run_id=run_id, body={**body, "over": over})


def judge(
    sweep: int, stopping: Stopping, objective: Objective, history: History, seen: Decision
) -> Decision | None:  # fmt: skip
    """Whether the trial of the run that has just come to a rung is stopped there. `history`: with that."""
    rung_number, step = seen.body["rung"], seen.body["step"]
    if seen.trial in history.stopped or seen.body["over"] or step in history.ends:  # who is through need not be stopped
        return None
    means = {trial: _mean(runs) for trial, runs in history.rungs[rung_number].items()}
    own = means.pop(seen.trial)
    bound = _RULES[stopping.rule](stopping, objective, own, means)
    if bound is None or objective.order(own) <= objective.order(bound):
        return None
    body = {
        "rung": rung_number, "step": step, "value": to_json(own), "bound": to_json(bound), "of": len(means) + 1,
        "detail": _detail(sweep, stopping, objective, step, own, bound),
    }  # fmt: skip
    return Decision(kind=Kind.STOP, trial=seen.trial, body=body)


def _mean(runs: Mapping[int, float]) -> float:
    values = list(runs.values())
    return math.nan if any(math.isnan(value) for value in values) else statistics.fmean(values)


def _asha(stopping: Stopping, objective: Objective, own: float, others: Mapping[int, float]) -> float | None:
    values = sorted([own, *others.values()], key=objective.order)
    return values[max(1, len(values) // stopping.factor) - 1] if len(values) >= stopping.least else None


def _median(stopping: Stopping, objective: Objective, own: float, others: Mapping[int, float]) -> float | None:
    numbers = [value for value in others.values() if not math.isnan(value)]
    return statistics.median(numbers) if len(others) >= stopping.least and numbers else None


_RULES: dict[Rule, Any] = {Rule.ASHA: _asha, Rule.MEDIAN: _median}


def _detail(sweep: int, stopping: Stopping, objective: Objective, step: float, own: float, bound: float) -> str:
    share = _SHARES.get(stopping.factor, f"1/{stopping.factor}")
    than = "the median" if stopping.rule is Rule.MEDIAN else f"the best {share}"
    return (
        f"stopped by sweep S{sweep} at step {step}: {objective.metric} {own:.4g}, worse than {than} ({bound:.4g})"
    )  # fmt: skip
