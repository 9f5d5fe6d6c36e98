"""Sweeps as people read them."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest
from rich.console import Console

from runyard.cli.commands.sweep import grids, table, views
from runyard.cli.show import formats
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


def reported(number: int, *told: tuple[float | None, float | None]) -> Trial:
    """A trial that was stopped: the last value and step of each run."""
    runs = tuple({"id": at, "rep": at, "seed": 1, "state": "cancelled", "reason": "early_stop", "value": value,
                  "step": step} for at, (value, step) in enumerate(told, 1))  # fmt: skip
    return trial(number, state="stopped", n=0, runs=runs)


def test_trials_that_came_to_no_result_show_what_they_reported() -> None:
    assert views.value(trial(value=0.25, half=0.1)) == "0.25 ± 0.10"
    assert views.value(reported(1, (0.41234, 3))) == "0.4123 at step 3"
    assert views.value(reported(1, (0.2, 9), (0.4, 3), (None, None))) == "0.3 at step 3"
    assert views.value(reported(1, (None, None))) == "-"
    trials = [reported(1, (0.1, 3)), reported(2, (None, None)), trial(3, 0.9), reported(4, (0.5, 9)),
              reported(5, (0.3, 9))]  # fmt: skip
    assert [each.number for each in views.ranked(trials, Objective(metric="loss"))] == [3, 5, 4, 1, 2]


def drawn(shown: Any, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(shown)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


LEARNING_RATE = 0.00066973203


def test_a_parameter_is_shown_as_the_command_gets_it() -> None:
    found = [trial(1, 0.123456789, params={"lr": LEARNING_RATE})]
    assert drawn(grids.of_trials(found, "loss"), 80)[1].split() == [
        "1", "0.00066973203", "0.1235", "3", "succeeded", "41"
    ]  # fmt: skip
    assert formats.parameters({"lr": LEARNING_RATE}) == "lr=0.00066973203"


def test_where_there_is_no_room_for_each_parameter_they_share_a_column() -> None:
    many = {f"parameter{number}": LEARNING_RATE for number in range(9)} | {"kind": "x" * 100}
    metric = "a metric of which the name is rather long"
    for build in (grids.of_trials, grids.of_runs):
        lines = drawn(build([trial(1, 0.5, params=many)], metric), 80)
        assert max(map(len, lines)) <= 80
        assert lines[0].split()[-1] == "PARAMETERS"
        assert "0.5" in lines[1] and "succeeded" in lines[1]
        told = "".join("".join(lines).split())
        assert all(f"parameter{number}=0.00066973203" in told for number in range(9))
        assert told.count("x") >= 100, "nothing is cut"
        assert len(drawn(build([trial(1, 0.5, params=many)], metric), 1000)) == 2
    assert len(drawn(grids.of_trials([trial(1, 0.5, params=many)], metric, is_cut=True), 80)) == 2


def test_the_share_of_steps_that_was_saved() -> None:
    assert views.saved({"done": 400, "full": 1000}) == "60% of the steps (400 of 1,000 done)"
    assert views.saved({"done": 1000, "full": 1000}) == ""
    assert views.saved(None) == ""


def test_the_bar_is_never_longer_than_it_is() -> None:
    assert views.bar({"trials": {"planned": 4, "made": 2, "ended": 1}}, width=8) == "██░░░░░░"
    assert views.bar({"trials": {"planned": 4, "made": 9, "ended": 9}}, width=8) == "████████"
    assert views.bar({"trials": {"planned": None, "made": 0, "ended": 0}}, width=8) == "░░░░░░░░"


def columns(shown: Any) -> list[str]:
    return [str(column.header) for column in shown.wide.columns]


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
