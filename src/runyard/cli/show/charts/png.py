"""A chart as PNG, drawn without any library."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence

from runyard.cli.show.charts import font, frame
from runyard.cli.show.charts.chart import Chart
from runyard.cli.show.charts.frame import Frame

SCALE = 2  # pixels of a dot of a letter
THICK = 2.2  # of a curve
INK, GRID, EDGE = (32, 32, 32), (224, 224, 224), (96, 96, 96)

Colour = tuple[int, int, int]
Place = tuple[float, float]


def draw(chart: Chart) -> bytes:
    place = Frame.around(chart, character=font.WIDTH * SCALE, line=(font.HEIGHT + 3) * SCALE)
    canvas = Canvas(place.width, place.height)
    _grid(canvas, chart, place)
    for owner, strokes in enumerate(chart.strokes()):
        for stroke in strokes:
            canvas.line([place.at(spot) for spot in stroke], _rgb(frame.colour(owner)))
    _legend(canvas, chart, place)
    return canvas.png()


def _grid(canvas: Canvas, chart: Chart, place: Frame) -> None:
    high = font.HEIGHT * SCALE
    for tick in place.x_ticks:
        across = round(place.across(tick.at))
        canvas.fill(across, place.top, across + 1, place.bottom, GRID)
        canvas.text(across - _width(tick.label) // 2, place.bottom + 8, tick.label)
    for tick in place.y_ticks:
        down = round(place.down(tick.at))
        canvas.fill(place.left, down, place.right, down + 1, GRID)
        canvas.text(place.left - 8 - _width(tick.label), down - high // 2 + SCALE, tick.label)
    canvas.fill(place.left, place.top, place.left + 1, place.bottom + 1, EDGE)
    canvas.fill(place.left, place.bottom, place.right, place.bottom + 1, EDGE)
    canvas.text((place.left + place.right - _width(chart.x_title)) // 2, place.bottom + 12 + high, chart.x_title)
    canvas.text(place.left, place.top - 12 - high, place.cut(chart.title))


def _legend(canvas: Canvas, chart: Chart, place: Frame) -> None:
    for (owner, title), down in zip(chart.legend(), place.legend, strict=True):
        if owner is not None:
            canvas.fill(place.left, down - 1, place.left + 24, down + 2, _rgb(frame.colour(owner)))
        canvas.text(place.left + frame.NAMES, down - 7, place.cut(title, frame.NAMES))


def _width(text: str) -> int:
    return len(text) * font.WIDTH * SCALE


def _rgb(colour: str) -> Colour:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._rows = [bytearray(b"\xff" * 3 * width) for _ in range(height)]

    def fill(self, left: int, top: int, right: int, bottom: int, colour: Colour) -> None:
        left, right = max(0, left), min(self._width, right)
        for row in self._rows[max(0, top) : max(0, bottom)]:
            row[3 * left : 3 * right] = bytes(colour) * max(0, right - left)

    def text(self, left: int, top: int, text: str, colour: Colour = INK) -> None:
        for across, down in font.dots(text):
            x, y = left + across * SCALE, top + down * SCALE
            self.fill(x, y, x + SCALE, y + SCALE, colour)

    def line(self, places: Sequence[Place], colour: Colour) -> None:
        """A line through all points; a single point is a dot. No pixel is painted twice, so edges are equally soft."""
        cover: dict[tuple[int, int], float] = {}
        if len(places) == 1:
            ((x, y),) = places
            places = [(x - 2, y), (x + 2, y), (x, y - 2), (x, y + 2)]
        for start, end in zip(places, places[1:] or places, strict=False):
            for x, y, share in _touched(start, end):
                cover[x, y] = max(share, cover.get((x, y), 0.0))
        for (x, y), share in cover.items():
            self._blend(x, y, share, colour)

    def _blend(self, x: int, y: int, share: float, colour: Colour) -> None:
        if 0 <= x < self._width and 0 <= y < self._height:
            row = self._rows[y]
            for index, new in enumerate(colour, 3 * x):
                row[index] = round(row[index] + (new - row[index]) * share)

    def png(self) -> bytes:
        head = struct.pack(">IIBBBBB", self._width, self._height, 8, 2, 0, 0, 0)  # eight bits of red, green, blue
        pixels = b"".join(b"\0" + row for row in self._rows)
        chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(pixels, 9)) + _chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _touched(start: Place, end: Place) -> Iterator[tuple[int, int, float]]:
    """The pixels of a line, each with how much of it is covered: by its distance from the middle of the line."""
    if abs(end[1] - start[1]) > abs(end[0] - start[0]):
        for y, x, share in _flat(start[::-1], end[::-1]):
            yield x, y, share
    else:
        yield from _flat(start, end)


def _flat(start: Place, end: Place) -> Iterator[tuple[int, int, float]]:
    """Of a line that is longer along the first direction than along the second one."""
    (x0, y0), (x1, y1) = sorted((start, end))
    slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
    slant = math.hypot(1.0, slope)
    reach = (THICK / 2 + 0.5) * slant
    for x in range(math.floor(x0), math.floor(x1) + 1):
        middle = y0 + slope * (min(x1, max(x0, x + 0.5)) - x0)
        for y in range(math.floor(middle - reach), math.floor(middle + reach) + 1):
            share = THICK / 2 + 0.5 - abs(y + 0.5 - middle) / slant
            if share > 0:
                yield x, y, min(1.0, share)
