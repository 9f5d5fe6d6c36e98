"""The mean of repetitions, and the interval in which the true mean lies with 95 % confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_SIDE = 0.975  # of each tail, 2.5 % are outside


@dataclass(frozen=True, slots=True)
class Estimate:
    mean: float
    low: float | None  # None: one value says nothing of how far another would be away
    high: float | None
    n: int


def estimate(values: Sequence[float]) -> Estimate | None:
    """None: there is no value."""
    if not values:
        return None
    middle, half = mean(values), _half(values)
    if half is None or not math.isfinite(middle - half) or not math.isfinite(middle + half):
        return Estimate(middle, None, None, len(values))
    return Estimate(middle, middle - half, middle + half, len(values))


def mean(values: Sequence[float]) -> float:
    """Of one at least; NaN where there is none."""
    try:
        return statistics.fmean(values)
    except OverflowError:  # of the sum
        return math.fsum(value / len(values) for value in values)
    except ValueError:  # infinities of both signs
        return math.nan


def _half(values: Sequence[float]) -> float | None:
    """Of the interval; None where there is none, or none that a float can hold."""
    if len(values) == 1 or not all(map(math.isfinite, values)):
        return None
    try:
        return student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    except OverflowError:
        return None


def student(freedom: int) -> float:
    """Student's t for 95 % on both sides: for n values, with n - 1 degrees of freedom.

    From a table up to 30; beyond it by the first terms of Cornish and Fisher's expansion, good to five digits.
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = statistics.NormalDist().inv_cdf(_SIDE)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


_T = (
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
    2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
    2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
)  # fmt: skip
