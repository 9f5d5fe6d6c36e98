"""Values in the order of their steps, and fewer of them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from runyard.model.metrics import MOST_NAMES, Point
from runyard.model.series import Sample, Series, Table, decimate


def series(*points: tuple[float | None, float, float], most: int = 1000) -> Series:
    made = Series(most)
    for step, at, value in points:
        made.add(Point(step, at, "a", value))
    return made


def test_a_repeated_step_counts_once_with_its_newest_value() -> None:
    first = [(step, 100.0 + step, 1.0) for step in range(5)]
    second = [(step, 200.0 + step, 2.0) for step in range(3, 7)]  # it went on from a checkpoint
    found = series(*first, *second).samples()
    assert [(sample.step, sample.value) for sample in found] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2)]


def test_steps_go_before_clocks() -> None:
    found = series((1, 500.0, 1.0), (3, 100.0, 3.0), (2, 300.0, 2.0)).samples()
    assert [sample.value for sample in found] == [1, 2, 3]


def test_without_steps_the_order_of_reports_counts() -> None:
    found = series((None, 500.0, 1.0), (None, 100.0, 2.0), (7, 1.0, 0.0)).samples()
    assert [sample.value for sample in found] == [0, 1, 2]


def test_a_series_without_end_is_held_in_part_and_attempts_agree_which() -> None:
    points = [(step, 0.0, 1.0) for step in range(5000)]
    again = [(step, 0.0, 2.0) for step in range(4000, 6000)]
    found = series(*points, *again, most=1000).samples()
    assert len(found) <= 1000
    steps = [sample.step for sample in found]
    assert steps == list(range(0, 6000, int(steps[1] or 0)))
    assert {sample.value for sample in found if sample.step is not None and sample.step >= 4000} == {2.0}


def test_values_without_steps_are_held_in_part() -> None:
    found = series(*((None, 0.0, float(number)) for number in range(5000)), most=1000).samples()
    assert 500 <= len(found) <= 1000
    assert [sample.value for sample in found] == sorted({sample.value for sample in found})


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=300), st.integers(min_value=1, max_value=100))
def test_decimation_keeps_the_extremes_and_the_order(values: list[float], most: int) -> None:
    samples = [Sample(step, 0.0, value) for step, value in enumerate(values)]
    found = decimate(samples, most)
    assert len(found) <= most
    steps = [sample.step for sample in found]
    assert steps == sorted(steps)  # type: ignore[type-var]
    numbers = [value for value in values if not math.isnan(value)]
    if numbers and most >= 2:
        kept = [sample.value for sample in found if not math.isnan(sample.value)]
        assert (min(kept), max(kept)) == (min(numbers), max(numbers))


def test_a_stretch_without_numbers_stays_a_gap() -> None:
    samples = [Sample(step, 0.0, math.nan if 40 <= step < 60 else 1.0) for step in range(100)]
    found = decimate(samples, 20)
    assert any(math.isnan(sample.value) for sample in found)


def test_a_table_has_a_row_for_each_step_and_for_what_came_together() -> None:
    table = Table()
    for point in (
        Point(1, 5.0, "loss", 0.5),
        Point(1, 5.0, "acc", 0.1),
        Point(2, 6.0, "loss", 0.4),
        Point(None, 7.0, "final", 1.0),
        Point(None, 7.0, "other", 2.0),
        Point(None, 7.0, "final", 3.0),
        Point(2, 8.0, "loss", 0.3),
    ):
        table.add(point)
    assert table.columns() == ["step", "time", "loss", "acc", "final", "other"]
    assert list(table.rows()) == [
        {"step": 1, "time": 5.0, "loss": 0.5, "acc": 0.1},
        {"step": 2, "time": 8.0, "loss": 0.3},
        {"step": None, "time": 7.0, "final": 1.0, "other": 2.0},
        {"step": None, "time": 7.0, "final": 3.0},
    ]
    assert len(table) == 4


def test_a_table_has_as_many_columns_as_names_are_kept() -> None:
    table = Table()
    for number in range(MOST_NAMES + 100):
        table.add(Point(1, 0.0, f"n{number}", 1.0))
    table.add(Point(2, 0.0, "n0", 2.0))
    table.add(Point(3, 0.0, "late", 3.0))
    assert len(table.names) == MOST_NAMES
    assert [row["step"] for row in table.rows()] == [1, 2]
