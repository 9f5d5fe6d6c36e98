from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import units


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4G", 4 << 30),
        ("512M", 512 << 20),
        ("1.5GiB", 3 << 29),
        ("1024K", 1 << 20),
        ("10", 10),
        (7, 7),
        ("2gb", 2 << 30),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "4 apples", "-4G", 0, -1, None, True, [], "1e9", "4GG", "0M", "9" * 400 + "G"]
)
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(errors.InvalidInput, match="size:"):
        units.parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2h", 7200),
        ("1d12h", 129600),
        ("1h 30m", 5400),
        ("1:30", 5400),
        ("1:30:00", 5400),
        ("0.5h", 1800),
        ("2-00:00", 172800),
        ("1-02:03:04", 93784),
        (60, 60),
        ("60", 60),
        (1.5, 1),
        ("10min", 600),
    ],
)
def test_durations(text: object, seconds: int) -> None:
    assert units.parse_duration(text) == seconds


NO_DURATIONS = ["", "h", "2 weeks", "-2h", 0, -5, None, True, "1:2:3:4", "5x", "2h3", "0s", "²"]


@pytest.mark.parametrize("text", [*NO_DURATIONS, float("inf"), float("nan"), "9" * 5000, "9" * 400 + "h"])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(errors.InvalidInput, match="time:"):
        units.parse_duration(text)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    for parse in (units.parse_size, units.parse_duration):
        try:
            assert parse(text) > 0
        except errors.InvalidInput as error:
            assert "\n" not in error.fix


@pytest.mark.parametrize(
    ("size", "shown"), [(None, "-"), (0, "0 B"), (1536, "1.5 KB"), (4 << 30, "4.0 GB"), (1 << 50, "1024 TB")]
)
def test_sizes_for_people(size: int | None, shown: str) -> None:
    assert units.show_size(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "-"), (1.23, "1.2s"), (45, "45s"), (192, "3m12s"), (7500, "2h05m"), (273600, "3d04h")]
)
def test_durations_for_people(seconds: float | None, shown: str) -> None:
    assert units.show_duration(seconds) == shown
