"""A chart in a terminal: braille, eight dots per character. Without colours, letters tell curves apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from runyard.cli.show.charts.axes import Axis, AxisTick
from runyard.cli.show.charts.chart import Chart, Spot

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta", "bright_yellow")
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column inside a character
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLAIN = str.maketrans("┤│─┬└…", "+|-++.")
LEAST_WIDTH, LEAST_HEIGHT = 20, 4

Piece = tuple[str, str]  # a text and its style


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    width: int  # of everything, in characters
    height: int  # of the curves, in lines
    is_coloured: bool = True
    is_braille: bool = True


@dataclass(slots=True)
class Grid:
    """Which dots are set, and by which curve."""

    columns: int
    rows: int
    dots: dict[tuple[int, int], int] = field(default_factory=dict)
    owners: dict[tuple[int, int], int] = field(default_factory=dict)

    def draw(self, stroke: Sequence[Spot], owner: int) -> None:
        wide, high = 2 * self.columns - 1, 4 * self.rows - 1
        places = [(round(across * wide), round((1 - up) * high)) for across, up in stroke]
        for start, end in zip(places, places[1:] or places, strict=False):
            for across, down in _line(start, end):
                self._set(across, down, owner)

    def _set(self, across: int, down: int, owner: int) -> None:
        place = down // 4, across // 2
        self.dots[place] = self.dots.get(place, 0) | _DOTS[down % 4][across % 2]
        self.owners[place] = owner


def draw(chart: Chart, look: Look) -> list[list[Piece]]:
    """Lines of pieces."""
    x, y = chart.axes()
    height = max(LEAST_HEIGHT, look.height)
    y_ticks = {round((1 - tick.at) * (height - 1)): tick.label for tick in y.ticks(max(2, height // 3))}
    margin = max(map(len, y_ticks.values()), default=0)
    width = max(LEAST_WIDTH, look.width - margin - 2)
    grid = Grid(width, height)
    for owner, strokes in enumerate(chart.strokes()):
        for stroke in strokes:
            grid.draw(stroke, owner)
    lines = [
        [(_cut(chart.title, look.width), "bold")],
        *(_row(grid, row, y_ticks.get(row, ""), margin, chart, look) for row in range(height)),
        *_x_axis(x, width, margin, chart.x_title),
        *_legend(chart, look),
    ]
    return lines if look.is_braille else [[(text.translate(_PLAIN), style) for text, style in line] for line in lines]


def _row(grid: Grid, row: int, label: str, margin: int, chart: Chart, look: Look) -> list[Piece]:
    pieces: list[Piece] = [(f"{label:>{margin}} {'┤' if label else '│'}", "dim")]
    for column in range(grid.columns):
        owner = grid.owners.get((row, column))
        if owner is None:
            pieces.append((" ", ""))
        else:
            pieces.append((_glyph(grid.dots[row, column], owner, len(chart.curves), look), colour(owner)))
    return pieces


def _glyph(dots: int, owner: int, curves: int, look: Look) -> str:
    if look.is_braille and (look.is_coloured or curves == 1):
        return chr(_BRAILLE + dots)
    return _LETTERS[owner % len(_LETTERS)]


def _x_axis(axis: Axis, width: int, margin: int, title: str) -> Iterator[list[Piece]]:
    ticks = axis.ticks(max(2, width // 12))
    marks, numbers = ["─"] * width, [" "] * (width + margin + 2)
    for tick in ticks:
        place = round(tick.at * (width - 1))
        marks[place] = "┬"
        _write(numbers, place + margin + 2, tick)
    yield [(f"{'':>{margin}} └{''.join(marks)}", "dim")]
    yield [("".join(numbers).rstrip(), "dim")]
    yield [(f"{title:^{width + margin + 2}}".rstrip(), "dim")]


def _write(numbers: list[str], centre: int, tick: AxisTick) -> None:
    """If nothing overlaps it."""
    start = max(0, min(centre - len(tick.label) // 2, len(numbers) - len(tick.label)))
    room = slice(max(0, start - 1), start + len(tick.label) + 1)
    if not "".join(numbers[room]).strip():
        numbers[start : start + len(tick.label)] = tick.label


def _legend(chart: Chart, look: Look) -> Iterator[list[Piece]]:
    letters = not (look.is_braille and (look.is_coloured or len(chart.curves) == 1))
    for owner, title in chart.legend():
        if owner is None:
            yield [(f"{' ' if letters else '  '} {title}", "dim")]
            continue
        mark = _LETTERS[owner % len(_LETTERS)] if letters else "⠤⠤"
        yield [(f"{mark} ", colour(owner)), (_cut(title, look.width - 3), "")]


def colour(owner: int) -> str:
    return COLOURS[owner % len(COLOURS)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _line(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """All dots from one to the other."""
    across, down = end[0] - start[0], end[1] - start[1]
    steps = max(abs(across), abs(down), 1)
    for step in range(steps + 1):
        yield start[0] + round(across * step / steps), start[1] + round(down * step / steps)
