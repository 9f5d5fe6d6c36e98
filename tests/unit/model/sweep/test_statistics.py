from __future__ import annotations

import pytest

from runyard.model.sweep.statistics import estimate, student


def test_one_value_has_no_interval() -> None:
    found = estimate([3.0])
    assert found is not None
    assert (found.mean, found.low, found.high, found.n) == (3.0, None, None, 1)
    assert estimate([]) is None


def test_the_interval_of_five() -> None:
    """As in any textbook: mean ± t(0.975, 4) · s / √5."""
    found = estimate([2.1, 2.5, 2.3, 2.9, 2.2])
    assert found is not None and found.low is not None and found.high is not None
    assert found.mean == pytest.approx(2.4)
    assert found.high - found.mean == pytest.approx(2.776445 * 0.3162278 / 5**0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (30, 2.04227), (31, 2.03951), (60, 2.00030), (1000, 1.96234)]
)
def test_student(freedom: int, value: float) -> None:
    assert student(freedom) == pytest.approx(value, abs=2e-5)


def test_infinities_have_no_interval() -> None:
    found = estimate([1.0, float("inf")])
    assert found is not None
    assert (found.mean, found.low) == (float("inf"), None)
