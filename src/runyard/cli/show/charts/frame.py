"""The layout of an image, in pixels from its upper left corner."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.cli.show.charts.axes import AxisTick
from runyard.cli.show.charts.chart import COLOURS, Chart, Spot

WIDTH, CURVES = 960, 480  # width of the image, height of the part with the curves
EDGE = 24
TITLE = 32
NAMES = 32  # from the left edge to the names in a legend, after their lines


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    left: int
    right: int
    top: int
    bottom: int
    width: int
    height: int
    x_ticks: list[AxisTick]
    y_ticks: list[AxisTick]
    legend: list[int]  # position of each of its lines
    character: int  # width of one

    @classmethod
    def around(cls, chart: Chart, *, character: int, line: int) -> Frame:
        """`character` and `line`: width and height of a character."""
        x, y = chart.axes()
        y_ticks = y.ticks(8)
        left = EDGE + character * max((len(tick.label) for tick in y_ticks), default=0)
        bottom = EDGE + TITLE + CURVES
        first = bottom + 2 * line + EDGE
        shown = len(chart.legend())
        longest = max(len(tick.label) for tick in x.ticks(10))
        return cls(
            left=left, right=WIDTH - EDGE, top=EDGE + TITLE, bottom=bottom, width=WIDTH,
            height=first + shown * line + EDGE // 2,
            x_ticks=x.ticks(max(2, min(10, (WIDTH - left - EDGE) // (character * (longest + 3))))), y_ticks=y_ticks,
            legend=[first + index * line for index in range(shown)], character=character,
        )  # fmt: skip

    def cut(self, text: str, indent: int = 0) -> str:
        """The part of a text that fits between the edges."""
        most = (self.right - self.left - indent) // self.character
        return text if len(text) <= most else f"{text[: most - 3]}..."

    def across(self, at: float) -> float:
        return self.left + at * (self.right - self.left)

    def down(self, at: float) -> float:
        return self.bottom - at * (self.bottom - self.top)

    def at(self, spot: Spot) -> tuple[float, float]:
        return self.across(spot[0]), self.down(spot[1])


def colour(owner: int) -> str:
    return COLOURS[owner % len(COLOURS)]
