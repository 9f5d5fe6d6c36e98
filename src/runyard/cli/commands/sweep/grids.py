"""Tables of a sweep: its configurations, its runs, and its plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runyard.cli.commands.sweep import views
from runyard.cli.show import formats, plan_page, tables
from runyard.cli.show.tables import Column
from runyard.client import Trial
from runyard.model import ranges, template

Rows = Sequence[Mapping[str, Any]]
ENDS = ("value", "step", "state", "reason")
OF_TRIALS = ("trial", "value", "low", "high", "n", "state", "shown", "means", "ids")
OF_RUNS = ("run", "trial", "rep", "seed", *ENDS)
SHOWN_FIRST = 10  # configurations of a plan
LONGEST_TITLE = 20  # characters, in a narrow terminal
SPARE = ("SEED", "REASON")  # columns left out in a narrow terminal


def of_trials(trials: Iterable[Trial], metric: str | None, *, is_cut: bool = False) -> tables.Fitting:
    """`is_cut`: one line per row, cut to the width of the terminal."""
    rows = [{**trial.row(), **_shown(trial)} for trial in trials]
    ends = (
        _column(metric or "VALUE", "shown", right=True, boring=("-",)),
        _column("N", "means", right=True, boring=("-",)),
        _column("STATE", "state", coloured=True),
        _column("RUNS", "ids", flexible=True),
    )
    return _table([_column("TRIAL", "trial", right=True)], ends, rows, OF_TRIALS, is_cut=is_cut)


def of_runs(trials: Iterable[Trial], metric: str | None) -> tables.Fitting:
    rows = [row for trial in trials for row in trial.run_rows()]
    starts = [_column(name.upper(), name, right=True) for name in ("run", "trial", "rep", "seed")]
    return _table(starts, _ends(metric or "VALUE"), rows, OF_RUNS)


def of_single_runs(rows: Rows, metric: str) -> tables.Fitting:
    """Runs that are not all of one sweep."""
    return _table([_column("RUN", "run", right=True)], _ends(metric), rows, OF_RUNS)


def draw_plan(console: Any, planned: Mapping[str, Any]) -> None:
    made = f"{formats.count(planned['trials'], 'configuration')} × {formats.count(planned['reps'], 'repetition')}"
    console.print(f"would submit {formats.count(planned['created'] + planned['retried'], 'run')}: {made}")
    if planned["sweep"] is not None:
        console.print(views.known(f"S{planned['sweep']}", planned))
    rows = [template.flat(params) for params in planned["configurations"][:SHOWN_FIRST]]
    if rows:
        console.print(_table((), (), rows, ()))
    else:
        console.print(f"{planned['document']['method']} chooses each configuration by the results of earlier ones")
    if 0 < len(rows) < planned["trials"]:
        console.print(f"… and {planned['trials'] - len(rows)} more")
    for folder in planned["sent"]:
        console.print(f"upload: {plan_page.brought(folder)}")


def _ends(metric: str) -> tuple[Column, ...]:
    return (
        _column(metric, "value", right=True, boring=("-",)), _column("STEP", "step", right=True, boring=("-",)),
        _column("STATE", "state", coloured=True), _column("REASON", "reason", boring=("-",)),
    )  # fmt: skip


def _table(
    starts: Sequence[Column], ends: Sequence[Column], rows: Rows, others: Sequence[str], *, is_cut: bool = False
) -> tables.Fitting:
    """One column per parameter between the first and last columns; in a narrow terminal, one for all parameters."""
    names = list(dict.fromkeys(name for row in rows for name in row if name not in others))
    each = [_parameter(name, is_numeric=_is_numeric(rows, name)) for name in names]
    together = Column(title="PARAMETERS", value=lambda row: _together(row, names), flexible=True, wrapped=not is_cut)
    kept = [column for column in (*starts, *ends) if column.title not in SPARE]
    cut = [dataclasses.replace(column, title=_cut(column.title)) for column in kept]
    return tables.Fitting(tables.build((*starts, *each, *ends), rows), tables.build((*cut, together), rows))


def _together(row: Mapping[str, Any], names: Iterable[str]) -> str:
    return formats.parameters({name: row[name] for name in names if row.get(name) is not None})


def _cut(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _parameter(name: str, *, is_numeric: bool) -> Column:
    """Not rounded, so that it can be typed again."""
    title = formats.one_line(name)
    return Column(title=title, value=lambda row: _exact(row.get(name)), right=is_numeric, flexible=not is_numeric)


def _is_numeric(rows: Rows, name: str) -> bool:
    return all(isinstance(row.get(name, 0), (int, float)) for row in rows)


def _column(title: str, name: str, **how: Any) -> Column:
    return Column(title=formats.one_line(title), value=lambda row: _cell(row.get(name)), **how)


def _cell(value: Any) -> str:
    return formats.number(value) if isinstance(value, float) else _exact(value)


def _exact(value: Any) -> str:
    return "-" if value is None else formats.one_line(template.show_value(value))


def _shown(trial: Trial) -> Mapping[str, Any]:
    return {
        "shown": views.value(trial),
        "means": trial.n or None,
        "ids": ranges.show(run["id"] for run in trial.runs),
    }
