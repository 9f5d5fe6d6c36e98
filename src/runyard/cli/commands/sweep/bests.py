"""The best of a sweep's configurations, or of any runs, by a metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from runyard import errors
from runyard.cli.commands.sweep import views
from runyard.cli.input import option_groups
from runyard.cli.show import output
from runyard.client import Run, Sweep, Trial
from runyard.client.sweep import apart
from runyard.model import metrics, ranges
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.model.template import flat

Row = dict[str, Any]

OPTIONS = (
    click.option("--metric", metavar="NAME", help="Metric to rank by (default: the sweep's own)."),
    click.option("--minimize", "goal", flag_value="minimize", default=None, help="Smallest value is best (default)."),
    click.option("--maximize", "goal", flag_value="maximize", default=None, help="Largest value is best."),
    click.option("--at", type=click.Choice(["last", "best"]), metavar="WHEN",
                 help="Which value of a run counts: last (default) or best."),
)  # fmt: skip
LIMIT = click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", default=5, show_default=True, help="How many to show."
)
judging_options = option_groups.together(*OPTIONS)
metric_options = option_groups.together(*OPTIONS, LIMIT)


def objective(given: Mapping[str, Any], own: Objective | None = None) -> Objective:
    """What to rank by: the options, then the sweep's own objective."""
    if given["metric"] is None and own is None:
        raise errors.InvalidInput("there is no metric to rank by", "name one: --metric val/loss")
    metric = None if given["metric"] is None else metrics.name_of(given["metric"])
    base = own if own and metric in (None, own.metric) else Objective(metric=metric or "")
    return Objective(metric=base.metric, goal=Goal(given["goal"] or base.goal), at=At(given["at"] or base.at))


def measured(sweep: Sweep, wanted: Objective) -> list[Trial]:
    """Its trials with their values of that metric, the best first."""
    return views.ranked(sweep.trials(**wanted.to_json()), wanted)


def of_sweep(sweep: Sweep, given: Mapping[str, Any], writer: output.OutputWriter) -> None:
    wanted = objective(given, views.objective(sweep.data))
    found = [trial for trial in measured(sweep, wanted) if trial.value is not None]
    if not found:
        raise errors.NotFound(
            f"no run of sweep {sweep.label} has reported {wanted.metric}", f"runyard sweep show {sweep.label}"
        )
    shown = found[: given["limit"]]
    ids = [run["id"] for run in shown[0].runs]

    def draw(console: Any) -> None:
        from runyard.cli.commands.sweep import grids

        console.print(grids.of_trials(shown, wanted.metric))
        _tell_next(ranges.show(ids))

    writer.write([plain(trial.row()) for trial in shown], draw, ids)


def of_runs(runs: Sequence[Run], wanted: Objective, limit: int, writer: output.OutputWriter) -> None:
    rows = [row for run in runs if (row := _row(run, wanted)) is not None]
    if not rows:
        raise errors.NotFound(f"none of these runs has reported {wanted.metric}", "runyard metrics RUN lists them")
    rows.sort(key=lambda row: (math.isnan(row["value"]), wanted.order(row["value"]), row["run"]))
    shown = rows[:limit]

    def draw(console: Any) -> None:
        from runyard.cli.commands.sweep import grids

        console.print(grids.of_single_runs(shown, wanted.metric))
        _tell_next(str(shown[0]["run"]))

    writer.write([plain(row) for row in shown], draw, [shown[0]["run"]])


def reported(run: Run, wanted: Objective) -> Row:
    """The value that counts, and the run's last step; None if it has not reported the metric."""
    row = next((row for row in run.reported() if row["name"] == wanted.metric), None)
    if row is None:
        return {"value": None, "step": None}
    best = "minimum" if wanted.goal is Goal.MINIMIZE else "maximum"
    value = metrics.from_json(row["last" if wanted.at is At.LAST else best])
    return {"value": value, "step": row["count"] if row["last_step"] is None else row["last_step"]}


def plain(row: Mapping[str, Any]) -> Row:
    """With NaN and infinities as strings, because JSON has none."""
    return {name: metrics.to_json(item) if isinstance(item, float) else item for name, item in row.items()}


def _row(run: Run, wanted: Objective) -> Row | None:
    found = reported(run, wanted)
    ends = {**found, "state": run.state}
    return None if found["value"] is None else {"run": run.id, **apart(flat(run.params), (*ends, "run")), **ends}


def _tell_next(ids: str) -> None:
    output.remark(f"  runyard fetch {ids}    download its outputs")
    output.remark(f"  runyard show {ids}     show its details")
