"""Axes, curves in a terminal, and pictures."""

from __future__ import annotations

import math
import struct
import zlib
from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.cli.show.charts import font, png, svg, terminal
from runyard.cli.show.charts.axes import FARTHEST, Axis
from runyard.cli.show.charts.chart import Chart, Curve, smooth
from runyard.cli.show.charts.frame import NAMES, Frame
from runyard.cli.show.charts.terminal import Look

ODD = [
    [1.0],
    [0.0, 0.0, 0.0],
    [5e-324, 1e-300],
    [1e308, -1e308, 1e299, -1e299],
    [1.0, math.nan, math.inf, -math.inf, 2.0],
    [-1.0, 0.0, 1.0],
    [1e-9, 1e9],
    [123456789.0, 123456789.5],
]


def chart(*values: list[float], is_log: bool = False, title: str = "loss of run 1") -> Chart:
    curves = [
        Curve(title=f"curve <{number}> & käse", xs=list(map(float, range(len(ys)))), ys=ys)
        for number, ys in enumerate(values)
    ]
    return Chart(curves=curves, title=title, is_log=is_log)


def drawn(chart: Chart, look: Look) -> list[str]:
    return ["".join(text for text, _ in line) for line in terminal.draw(chart, look)]


# --- axes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.0, 10000.0, ["0", "2000", "4000", "6000", "8000", "10000"]),
        (-1.0, 1.0, ["-1.0", "-0.5", "0", "0.5", "1.0"]),
        (0.0, 1e7, ["0", "2e+06", "4e+06", "6e+06", "8e+06", "1e+07"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in Axis(low=low, high=high).ticks(5)] == labels


def test_ticks_of_a_logarithmic_axis_are_powers_of_ten_and_what_is_between() -> None:
    wide = Axis.over([1e-6, 1.0], is_log=True).ticks(8)
    assert [tick.label for tick in wide] == ["1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1"]
    near = Axis.over([0.1, 10.0], is_log=True).ticks(8)
    assert [tick.label for tick in near] == ["0.1", "0.2", "0.5", "1", "2", "5", "10"]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20), st.booleans())
def test_an_axis_holds_its_values_and_its_ticks(values: list[float], is_log: bool) -> None:
    axis = Axis.over(values, is_log=is_log)
    places = [axis.place(value) for value in values]
    assert all(place is None or -1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(
        place is not None for place, value in zip(places, values, strict=True) if 1 / FARTHEST < value < FARTHEST
    )
    assert all(-1e-6 <= tick.at <= 1 + 1e-6 for tick in axis.ticks(6))


# --- terminal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("values", ODD)
@pytest.mark.parametrize("is_braille", [True, False])
def test_a_drawing_fits(values: list[float], width: int, is_braille: bool) -> None:
    lines = drawn(chart(values, [2.0, 1.0]), Look(width=width, height=8, is_braille=is_braille))
    assert max(map(len, lines)) <= width
    assert len(lines) == 1 + 8 + 3 + 2
    if not is_braille:
        assert "".join(lines).replace("käse", "").isascii()


def test_a_rising_line_rises() -> None:
    lines = drawn(chart([0.0, 1.0, 2.0, 3.0]), Look(width=30, height=8))[1:9]
    first = [min(index for index, char in enumerate(line) if 0x2800 < ord(char) < 0x2900) for line in lines]
    assert first == sorted(first, reverse=True)
    assert first[0] > 20


def test_without_colours_letters_tell_curves_apart() -> None:
    lines = drawn(chart([0.0, 0.0], [1.0, 1.0]), Look(width=40, height=6, is_coloured=False))
    assert set(lines[1][3:]) >= {"b"}
    assert set(lines[6][3:]) >= {"a"}
    assert [line[:2] for line in lines[-2:]] == ["a ", "b "]


def test_a_legend_names_some_of_many_curves() -> None:
    many = chart(*([float(number), 1.0] for number in range(30)))
    lines = drawn(many, Look(width=60, height=6))
    assert len(lines) == 1 + 6 + 3 + 11
    assert lines[-2].endswith("curve <9> & käse")
    assert lines[-1].strip() == "and 20 more"
    picture = svg.draw(many).decode()
    assert picture.count("curve &lt;") == 10
    assert "and 20 more" in picture
    assert png.draw(many)


def test_what_is_not_a_number_leaves_a_gap() -> None:
    with_gap = chart([1.0] * 10 + [math.nan] * 80 + [1.0] * 10)
    row = next(
        line for line in drawn(with_gap, Look(width=80, height=4)) if any(0x2800 < ord(c) < 0x2900 for c in line)
    )
    assert "⠀" not in row
    assert "          " in row.strip()
    assert len(with_gap.strokes()[0]) == 2


def test_smoothing_keeps_the_mean_and_the_gaps() -> None:
    assert smooth([4.0, 4.0, 4.0], 0.9) == pytest.approx([4.0, 4.0, 4.0])
    found = smooth([0.0, math.nan, 10.0], 0.5)
    assert found[0] == 0.0
    assert math.isnan(found[1])
    assert found[2] == pytest.approx(20 / 3)


# --- pictures ---------------------------------------------------------------------------------------------------------


def pixels(data: bytes) -> tuple[int, int, bytes]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    position, kinds, packed = 8, [], b""
    width = height = 0
    while position < len(data):
        size, kind = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + size]
        assert struct.unpack(">I", data[position + 8 + size : position + 12 + size])[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        packed += body if kind == b"IDAT" else b""
        position += 12 + size
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]
    return width, height, zlib.decompress(packed)


@pytest.mark.parametrize("values", ODD)
@pytest.mark.parametrize("is_log", [False, True])
def test_pictures_of_odd_values(values: list[float], is_log: bool) -> None:
    picture = chart(values, [0.5, 2.0], is_log=is_log)
    width, height, raw = pixels(png.draw(picture))
    assert len(raw) == height * (1 + 3 * width)
    blue = bytes.fromhex("1f77b4")
    shown = bool(picture.strokes()[0])
    assert raw.count(blue) > 72 or not shown  # more than the mark in the legend
    minidom.parseString(svg.draw(picture))


def test_a_svg_shows_names_as_they_are() -> None:
    document = minidom.parseString(svg.draw(chart([1.0, 2.0], title="a<b>&'c'")))
    texts = ["".join(node.data for node in text.childNodes) for text in document.getElementsByTagName("text")]
    assert "a<b>&'c'" in texts
    assert "curve <0> & käse" in texts
    assert len(document.getElementsByTagName("polyline")) == 1


def test_names_that_are_too_long_end_at_the_edge() -> None:
    """Where they would only be cut in the middle of a letter, nobody knows that there is more."""
    long = Chart(curves=[Curve(title="1" * 200, xs=[1, 2], ys=[1, 2])], title="m" * 250)
    place = Frame.around(long, character=7, line=18)
    for text, indent in (("m" * 250, 0), ("1" * 200, NAMES)):
        shown = place.cut(text, indent)
        assert shown.endswith(f"{text[0]}...")
        assert shown in svg.draw(long).decode()
        assert place.left + indent + 7 * len(shown) <= place.right
    assert place.cut("short") == "short"


def test_every_printable_letter_has_dots() -> None:
    without = [chr(code) for code in range(33, 127) if not list(font.dots(chr(code)))]
    assert without == []
    shapes = {tuple(font.dots(chr(code))) for code in range(32, 127)}
    assert len(shapes) == 95
    assert list(font.dots("ä")) == list(font.dots("?"))
