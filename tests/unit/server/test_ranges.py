from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.ranges import Span, parse_range

WHOLE = Span(start=0, stop=10, size=10)


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-9", 0, 10),
        ("bytes=3-", 3, 10),
        ("bytes=-4", 6, 10),
        ("bytes=-99", 0, 10),
        (" bytes=9-99 ", 9, 10),
    ],
)
def test_parts(header: str, start: int, stop: int) -> None:
    assert parse_range(header, 10) == Span(start=start, stop=stop, size=10, partial=True)


@pytest.mark.parametrize(
    "header", [None, "", "bytes=-", "lines=1-2", "bytes=1-2,4-5", "bytes=a-b", "bytes=1", "bytes=٣-"]
)
def test_what_is_no_range_gives_everything(header: str | None) -> None:
    assert parse_range(header, 10) == WHOLE


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=5-4", "bytes=-0"])
def test_parts_that_are_not_there(header: str) -> None:
    assert parse_range(header, 10) is None


def test_an_empty_file() -> None:
    assert parse_range(None, 0) == Span(start=0, stop=0, size=0)
    assert parse_range("bytes=0-", 0) is None


@given(st.integers(0, 50), st.integers(0, 60), st.integers(0, 60))
def test_a_part_is_what_slicing_gives(size: int, first: int, last: int) -> None:
    data = bytes(range(size))
    span = parse_range(f"bytes={first}-{last}", size)
    expected = data[first : last + 1]
    assert (data[span.start : span.stop] if span else b"") == expected
    if span:
        assert span.headers["Content-Range"] == f"bytes {first}-{min(last, size - 1)}/{size}"
