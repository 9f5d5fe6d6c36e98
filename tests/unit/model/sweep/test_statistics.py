from __future__ import annotations

import math

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


def test_numbers_with_which_one_cannot_reckon_harm_nobody() -> None:
    """They are what runs report, and the yard goes on."""
    both = estimate([math.inf, -math.inf])
    assert both is not None
    assert math.isnan(both.mean) and (both.low, both.n) == (None, 2)
    large = estimate([1.5e308, 1.7e308])
    assert large is not None
    assert large.mean == pytest.approx(1.6e308)
    far = estimate([1e308, -1e308])
    assert far is not None
    assert (far.mean, far.low) == (0.0, None)
