"""A chart as SVG: it scales, and its text can be searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from runyard.cli.show.charts import frame
from runyard.cli.show.charts.chart import Chart, Spot
from runyard.cli.show.charts.frame import Frame

FONT = "font-family='Helvetica, Arial, sans-serif' font-size='13'"


def draw(chart: Chart) -> bytes:
    place = Frame.around(chart, character=7, line=18)
    parts = "\n".join([*_grid(chart, place), *_curves(chart, place), *_legend(chart, place)])
    size = f"width='{place.width}' height='{place.height}' viewBox='0 0 {place.width} {place.height}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT}>\n{parts}\n</svg>\n".encode()


def _grid(chart: Chart, place: Frame) -> Iterator[str]:
    yield "<rect width='100%' height='100%' fill='white'/>"
    for tick in place.x_ticks:
        across = place.across(tick.at)
        yield f"<path d='M{across:.1f} {place.top}V{place.bottom}' stroke='#e0e0e0'/>"
        yield _text(across, place.bottom + 18, tick.label, "middle")
    for tick in place.y_ticks:
        down = place.down(tick.at)
        yield f"<path d='M{place.left} {down:.1f}H{place.right}' stroke='#e0e0e0'/>"
        yield _text(place.left - 8, down + 4, tick.label, "end")
    yield f"<path d='M{place.left} {place.top}V{place.bottom}H{place.right}' fill='none' stroke='#404040'/>"
    yield _text((place.left + place.right) / 2, place.bottom + 38, chart.x_title, "middle")
    yield _text(place.left, place.top - 14, place.cut(chart.title), "start", "font-weight='bold'")


def _curves(chart: Chart, place: Frame) -> Iterator[str]:
    for owner, strokes in enumerate(chart.strokes()):
        style = f"fill='none' stroke='{frame.colour(owner)}' stroke-width='1.8' stroke-linejoin='round'"
        for stroke in strokes:
            if len(stroke) == 1:
                across, down = place.at(stroke[0])
                yield f"<circle cx='{across:.1f}' cy='{down:.1f}' r='3' fill='{frame.colour(owner)}'/>"
            else:
                yield f"<polyline points='{_points(stroke, place)}' {style}/>"


def _points(stroke: Sequence[Spot], place: Frame) -> str:
    return " ".join("{:.1f},{:.1f}".format(*place.at(spot)) for spot in stroke)


def _legend(chart: Chart, place: Frame) -> Iterator[str]:
    for (owner, title), down in zip(chart.legend(), place.legend, strict=True):
        if owner is not None:
            yield f"<path d='M{place.left} {down}h24' stroke='{frame.colour(owner)}' stroke-width='3'/>"
        yield _text(place.left + frame.NAMES, down + 4, place.cut(title, frame.NAMES), "start")


def _text(across: float, down: float, text: str, anchor: str, more: str = "") -> str:
    return f"<text x='{across:.1f}' y='{down:.1f}' text-anchor='{anchor}' {more}>{escape(text)}</text>"
