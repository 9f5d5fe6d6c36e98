"""The range of an axis, and the numbers along it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FARTHEST = 1e300  # beyond, arithmetic would overflow
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisTick:
    at: float  # 0 to 1 along the axis
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """From `low` to `high`, which are exponents of ten if the axis is logarithmic."""

    low: float
    high: float
    is_log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], *, is_log: bool = False) -> Axis:
        """The range of the values; numbers that cannot be shown are skipped."""
        kept = [math.log10(value) if is_log else value for value in values if _is_shown(value, is_log)]
        low, high = min(kept, default=0.0), max(kept, default=1.0)
        greatest = max(abs(low), abs(high))
        if high - low <= max(greatest * 1e-12, 1 / FARTHEST):
            room = greatest / 10 if greatest > 1 / FARTHEST and not is_log else 0.5
            low, high = low - room, high + room
        return cls(low=low, high=high, is_log=is_log)

    def place(self, value: float) -> float | None:
        """The position of a value, 0 to 1; None if it cannot be shown."""
        if not _is_shown(value, self.is_log):
            return None
        return self._at(math.log10(value) if self.is_log else value)

    def ticks(self, most: int) -> list[AxisTick]:
        values = self._powers(most) if self.is_log else self._round_numbers(most)
        return [AxisTick(at=self._at(value), label=label) for value, label in values]

    def _at(self, shown: float) -> float:
        return (shown - self.low) / (self.high - self.low)

    def _round_numbers(self, most: int) -> list[tuple[float, str]]:
        step = _step(self.high - self.low, most)
        first = math.ceil(self.low / step - 1e-9)
        values = [(first + index) * step for index in range(most + 2)]
        kept = [value for value in values if value <= self.high + step * 1e-9]
        return list(zip(kept, labels(kept, step), strict=True))

    def _powers(self, most: int) -> list[tuple[float, str]]:
        """Powers of ten, with marks between them if there are few."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        fine, coarse = (self._inside(powers, factors) for factors in ((1, 2, 5), (1,)))
        kept = fine if len(fine) <= most + 2 else coarse[:: -(-len(coarse) // most)]
        if len(kept) >= 2:
            return [(math.log10(value), f"{value:g}") for value in kept]
        inner = Axis(low=10.0**self.low, high=10.0**self.high)._round_numbers(most)
        return [(math.log10(value), label) for value, label in inner if value > 0]

    def _inside(self, powers: Iterable[int], factors: Iterable[int]) -> list[float]:
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [value for value in values if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9]


def labels(values: Sequence[float], step: float) -> list[str]:
    """As short as possible while distinct."""
    greatest = max((abs(value) for value in values), default=0.0)
    if greatest >= 1e6 or 0 < greatest < 1e-3:
        return [f"{value:.{_digits(greatest, step)}g}" for value in values]
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    places += not math.isclose(step * 10**places, round(step * 10**places))  # a step of 2.5
    return [f"{value:.{places}f}" if value else "0" for value in values]


def _digits(greatest: float, step: float) -> int:
    return min(12, max(2, math.ceil(math.log10(greatest / step)) + 2))


def _step(room: float, most: int) -> float:
    rough = room / max(1, most)
    size: float = 10.0 ** math.floor(math.log10(rough))
    return next(size * nice for nice in _NICE if size * nice >= rough * (1 - 1e-9))


def _is_shown(value: float, is_log: bool) -> bool:
    return 1 / FARTHEST <= value <= FARTHEST if is_log else abs(value) <= FARTHEST
