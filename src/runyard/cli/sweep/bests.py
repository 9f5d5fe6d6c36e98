"""The best of a sweep's configurations, or of any runs, by a metric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from runyard import errors
from runyard.cli import output, words
from runyard.cli.sweep import views
from runyard.client import Run, Sweep, Trial
from runyard.client.sweep import apart
from runyard.model import metrics
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.model.sweep.statistics import estimate
from runyard.model.template import flat

Function = TypeVar("Function", bound=Callable[..., Any])
Row = dict[str, Any]

OPTIONS = (
    click.option("--metric", metavar="NAME", help="By this metric; without it, by the sweep's own."),
    click.option("--minimize", "goal", flag_value="minimize", default=None, help="The smallest is best (default)."),
    click.option("--maximize", "goal", flag_value="maximize", default=None, help="The largest is best."),
    click.option("--at", type=click.Choice(["last", "best"]), metavar="WHEN",
                 help="Which value counts: last (default), or best for the best one on the way."),
)  # fmt: skip
LIMIT = click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", default=5, show_default=True, help="How many to show."
)


def judging_options(function: Function) -> Function:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def metric_options(function: Function) -> Function:
    return judging_options(LIMIT(function))


def objective(given: Mapping[str, Any], own: Objective | None = None) -> Objective:
    """What to judge by: what was asked for, over what the sweep is after."""
    if given["metric"] is None and own is None:
        raise errors.InvalidInput("there is no metric to judge by", "name one: --metric val/loss")
    metric = None if given["metric"] is None else metrics.name_of(given["metric"])
    base = own if own and metric in (None, own.metric) else Objective(metric=metric or "")
    return Objective(metric=base.metric, goal=Goal(given["goal"] or base.goal), at=At(given["at"] or base.at))


def measured(sweep: Sweep, wanted: Objective) -> list[Trial]:
    """Its trials with their values of that metric, the best first."""
    trials = sweep.trials()
    if wanted != views.objective(sweep.data):
        runs = {run.id: run for run in sweep.runs()}
        trials = [_measured(trial, runs, wanted) for trial in trials]
    return views.ranked(trials, wanted)


def of_sweep(sweep: Sweep, given: Mapping[str, Any], writer: output.Writer) -> None:
    wanted = objective(given, views.objective(sweep.data))
    found = [trial for trial in measured(sweep, wanted) if trial.value is not None]
    if not found:
        raise errors.NotFound(
            f"no run of sweep {sweep.label} has reported {wanted.metric}", f"runyard sweep show {sweep.label}"
        )
    shown = found[: given["limit"]]
    ids = [run["id"] for run in shown[0].runs]

    def draw(console: Any) -> None:
        from runyard.cli.sweep import grids

        console.print(grids.of_trials(shown, wanted.metric))
        _tell_next(words.numbers(ids))

    writer.write([plain(trial.row()) for trial in shown], draw, ids)


def of_runs(runs: Sequence[Run], wanted: Objective, limit: int, writer: output.Writer) -> None:
    rows = [row for run in runs if (row := _row(run, wanted)) is not None]
    if not rows:
        raise errors.NotFound(f"none of these runs has reported {wanted.metric}", "runyard metrics RUN lists them")
    rows.sort(key=lambda row: (math.isnan(row["value"]), wanted.order(row["value"]), row["run"]))
    shown = rows[:limit]

    def draw(console: Any) -> None:
        from runyard.cli.sweep import grids

        console.print(grids.of_single_runs(shown, wanted.metric))
        _tell_next(str(shown[0]["run"]))

    writer.write([plain(row) for row in shown], draw, [shown[0]["run"]])


def reported(run: Run, wanted: Objective) -> Row:
    """The value that counts, and the step that the run has come to; None: it has not reported it."""
    row = next((row for row in run.reported() if row["name"] == wanted.metric), None)
    if row is None:
        return {"value": None, "step": None}
    best = "minimum" if wanted.goal is Goal.MINIMIZE else "maximum"
    value = metrics.from_json(row["last" if wanted.at is At.LAST else best])
    return {"value": value, "step": row["count"] if row["last_step"] is None else row["last_step"]}


def plain(row: Mapping[str, Any]) -> Row:
    """With NaN and infinities as JSON can say them."""
    return {name: metrics.to_json(item) if isinstance(item, float) else item for name, item in row.items()}


def _measured(trial: Trial, runs: Mapping[int, Run], wanted: Objective) -> Trial:
    measured = [{**run, **reported(runs[run["id"]], wanted)} for run in trial.runs if run["id"] in runs]
    found = estimate([run["value"] for run in measured if run["value"] is not None and run["state"] == "succeeded"])
    if found is None:
        return dataclasses.replace(trial, value=None, low=None, high=None, n=0, runs=tuple(measured))
    return dataclasses.replace(trial, value=found.mean, low=found.low, high=found.high, n=found.n, runs=tuple(measured))


def _row(run: Run, wanted: Objective) -> Row | None:
    found = reported(run, wanted)
    ends = {**found, "state": run.state}
    return None if found["value"] is None else {"run": run.id, **apart(flat(run.params), (*ends, "run")), **ends}


def _tell_next(ids: str) -> None:
    output.remark(f"  runyard fetch {ids}    bring its outputs here")
    output.remark(f"  runyard show {ids}     all about it")
