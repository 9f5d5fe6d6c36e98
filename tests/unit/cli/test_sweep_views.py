"""Sweeps as people read them."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest

from runyard.cli.sweep import grids, table, views
from runyard.client import Trial
from runyard.model.sweep.objective import Goal, Objective


def trial(number: int = 1, value: float | None = None, half: float | None = None, **fields: Any) -> Trial:
    low, high = (None, None) if value is None or half is None else (value - half, value + half)
    runs = ({"id": 40 + number, "rep": 1, "seed": 9, "state": "succeeded", "reason": None, "value": value, "step": 3},)
    given = {"params": {"lr": 0.1}, "state": "succeeded", "n": 3, "runs": runs, **fields}
    return Trial(number=number, value=value, low=low, high=high, **given)


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (None, None, "-"),
        (0.123456, None, "0.1235"),
        (0.123456, 0.0123, "0.123 ± 0.012"),
        (1234.5678, 25.0, "1235 ± 25"),
        (1234567.0, 25000.0, "1.235e+06 ± 2.5e+04"),
        (0.5, 0.0, "0.5 ± 0"),
        (math.nan, None, "nan"),
    ],
)
def test_a_mean_has_as_many_digits_as_its_interval_leaves(value: float, half: float, shown: str) -> None:
    assert views.interval(trial(value=value, half=half)) == shown


def test_the_best_come_first_and_those_without_a_value_last() -> None:
    trials = [trial(1, 0.3), trial(2), trial(3, math.nan), trial(4, 0.1), trial(5, 0.2)]
    assert [each.number for each in views.ranked(trials, Objective(metric="loss"))] == [4, 5, 1, 3, 2]
    assert [each.number for each in views.ranked(trials, Objective(metric="acc", goal=Goal.MAXIMIZE))] == [
        1,
        5,
        4,
        3,
        2,
    ]
    assert views.ranked(trials, None) == trials


def test_the_share_of_steps_that_was_saved() -> None:
    assert "saved 60% of the steps (400 of 1,000" in views.saved({"done": 400, "full": 1000})
    assert views.saved({"done": 1000, "full": 1000}) == ""
    assert views.saved(None) == ""


def test_the_bar_is_never_longer_than_it_is() -> None:
    assert views.bar({"trials": {"planned": 4, "made": 2, "ended": 1}}, width=8) == "██░░░░░░"
    assert views.bar({"trials": {"planned": 4, "made": 9, "ended": 9}}, width=8) == "████████"
    assert views.bar({"trials": {"planned": None, "made": 0, "ended": 0}}, width=8) == "░░░░░░░░"


def columns(shown: Any) -> list[str]:
    return [str(column.header) for column in shown.columns]


def test_columns_are_parameters_by_their_paths() -> None:
    found = [trial(1, 0.3, 0.1, params={"lr": 1, "model": {"depth": 2}}), trial(2, params={"lr": 2, "state": "x"})]
    assert columns(grids.of_trials(found, "loss")) == [
        "TRIAL", "lr", "model.depth", "params.state", "loss", "N", "STATE", "RUNS"
    ]  # fmt: skip
    assert columns(grids.of_runs(found, "loss"))[:5] == ["RUN", "TRIAL", "REP", "SEED", "lr"]


def test_a_row_has_a_parameter_that_is_called_like_a_column() -> None:
    assert trial(2, 0.5, params={"n": 7, "trial": 1}).row() == {
        "trial": 2, "params.n": 7, "params.trial": 1, "value": 0.5, "low": None, "high": None, "n": 3,
        "state": "succeeded",
    }  # fmt: skip


def test_csv_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [trial(1, 0.3, params={"text": 'a,"b"\n'}).row(), trial(2, params={"layers": [1, 2]}).row()]
    table.write_csv(rows)
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["text"] for row in read] == ['a,"b"\n', ""]
    assert [row["layers"] for row in read] == ["", "[1, 2]"]
    assert [row["value"] for row in read] == ["0.3", ""]
