"""Where everything is in a picture, in pixels from its upper left corner."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.cli.charts.axes import Tick
from runyard.cli.charts.chart import COLOURS, Chart, Spot

WIDTH, CURVES = 960, 480  # of the picture, and of the part with the curves, from top to bottom
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
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    legend: list[int]  # where each of its lines is
    character: int  # how wide one is

    @classmethod
    def around(cls, chart: Chart, *, character: int, line: int) -> Frame:
        """`character` and `line`: how large a text is."""
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
        """As much of a text as fits between the edges."""
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
