"""The same text means different things to each scheduler."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model import native_units
from runyard.model.native_units import Writing

MINUTE, HOUR, DAY = 60, 3600, 86400
TIMES = [  # text, runyard, Slurm, Grid Engine; ... is an error
    ("90", 90, 90 * MINUTE, 90),
    ("1:30", HOUR + 30 * MINUTE, 90, 90),
    ("0:10", 10 * MINUTE, 10, 10),
    ("1:30:00", HOUR + 30 * MINUTE, HOUR + 30 * MINUTE, HOUR + 30 * MINUTE),
    ("100:00:05", 100 * HOUR + 5, 100 * HOUR + 5, 100 * HOUR + 5),
    (":1:30", ..., 90, 90),
    ("1-12", ..., DAY + 12 * HOUR, ...),
    ("1-12:30", DAY + 12 * HOUR + 30 * MINUTE, DAY + 12 * HOUR + 30 * MINUTE, ...),
    ("2-00:00:01", 2 * DAY + 1, 2 * DAY + 1, ...),
    ("0-06:00", 6 * HOUR, 6 * HOUR, ...),
    ("2h", 2 * HOUR, 2 * HOUR, 2 * HOUR),
    ("1d12h", 36 * HOUR, 36 * HOUR, 36 * HOUR),
    (" 5 ", 5, 5 * MINUTE, 5),
    ("UNLIMITED", ..., None, None),
    ("infinite", ..., None, None),
    ("INFINITY", ..., None, None),
    ("0", ..., None, ...),
    ("0:0:0", ..., None, ...),
    ("", ..., ..., ...),
    (":", ..., ..., ...),
    ("-", ..., ..., ...),
    ("soon", ..., ..., ...),
    ("1:2:3:4", ..., ..., ...),
    ("-5", ..., ..., ...),
]
SIZES = [
    ("1024", 1024, 1 << 30, 1024),
    ("1024K", 1 << 20, 1 << 20, 1 << 20),
    ("4G", 4 << 30, 4 << 30, 4 << 30),
    ("4g", 4 << 30, 4 << 30, 4 * 1000**3),
    ("4000m", 4000 << 20, 4000 << 20, 4000 * 1000**2),
    ("257000M", 257000 << 20, 257000 << 20, 257000 << 20),
    ("1.5G", 3 << 29, 3 << 29, 3 << 29),
    ("0", ..., None, ...),
    ("INFINITY", ..., None, None),
    ("", ..., ..., ...),
    ("much", ..., ..., ...),
]


def by_writing(table: list[tuple[object, ...]]) -> list[tuple[object, Writing, object]]:
    return [(row[0], writing, meant) for row in table for writing, meant in zip(Writing, row[1:], strict=True)]


@pytest.mark.parametrize(("text", "writing", "seconds"), by_writing(TIMES))
def test_times(text: str, writing: Writing, seconds: object) -> None:
    if seconds is not ...:
        assert native_units.parse_time(text, writing) == seconds
        return
    with pytest.raises(errors.InvalidInput, match="time:"):
        native_units.parse_time(text, writing)


@pytest.mark.parametrize(("text", "writing", "size"), by_writing(SIZES))
def test_sizes(text: str, writing: Writing, size: object) -> None:
    if size is not ...:
        assert native_units.parse_size(text, writing) == size
        return
    with pytest.raises(errors.InvalidInput, match="memory:"):
        native_units.parse_size(text, writing)


@pytest.mark.parametrize(("seconds", "minutes"), [(1, 1), (60, 1), (61, 2), (3600, 60), (3601, 61)])
def test_minutes_are_rounded_up(seconds: int, minutes: int) -> None:
    assert native_units.whole_minutes(seconds) == minutes


@pytest.mark.parametrize(("size", "megabytes"), [(1, 1), (1 << 20, 1), ((1 << 20) + 1, 2), (1 << 30, 1024)])
def test_megabytes_are_rounded_up(size: int, megabytes: int) -> None:
    assert native_units.whole_megabytes(size) == megabytes
