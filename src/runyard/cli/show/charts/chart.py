"""What is drawn: curves over a common axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runyard.cli.show.charts.axes import Axis

Spot = tuple[float, float]  # 0 to 1 from the left, and from below
MOST_NAMED = 10  # curves, in a legend: as many as there are colours
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    title: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    curves: Sequence[Curve]
    title: str
    x_title: str = "step"
    is_log: bool = False  # from bottom to top

    def axes(self) -> tuple[Axis, Axis]:
        x = Axis.over(itertools.chain.from_iterable(curve.xs for curve in self.curves))
        return x, Axis.over(itertools.chain.from_iterable(curve.ys for curve in self.curves), is_log=self.is_log)

    def legend(self) -> list[tuple[int | None, str]]:
        """The index and title of each curve; the last line counts those that are left out."""
        named: list[tuple[int | None, str]] = [(owner, curve.title) for owner, curve in enumerate(self.curves)]
        left = len(named) - MOST_NAMED
        return [*named[:MOST_NAMED], (None, f"and {left} more")] if left > 0 else named

    def strokes(self) -> list[list[list[Spot]]]:
        """The line segments of each curve: NaN leaves a gap."""
        x, y = self.axes()
        return [list(_strokes(curve, x, y)) for curve in self.curves]


def _strokes(curve: Curve, x: Axis, y: Axis) -> Iterator[list[Spot]]:
    stroke: list[Spot] = []
    for across, up in zip(map(x.place, curve.xs), map(y.place, curve.ys), strict=True):
        if across is None or up is None:
            if stroke:
                yield stroke
            stroke = []
        else:
            stroke.append((across, up))
    if stroke:
        yield stroke


def smooth(values: Sequence[float], weight: float) -> list[float]:
    """An exponential moving average with `weight` per step, corrected for the bias of the first value. NaN stays NaN
    and does not affect other values."""
    found, mean, total = list[float](), 0.0, 0.0
    for value in values:
        if math.isfinite(value):
            mean, total = mean * weight + value * (1 - weight), total * weight + (1 - weight)
            found.append(mean / total)
        else:
            found.append(value)
    return found
