"""Which segments are read, which are merged, and which may go: decided without a store."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.blobs.s3.segments import LEVELS, TOGETHER, Segment, largest, mergeable, plan


def segment(start: int, end: int) -> Segment:
    return Segment(start=start, end=end)


def covered(segments: list[Segment]) -> set[int]:
    return {offset for each in segments for offset in range(each.start, each.end)}


@st.composite
def overlapping(draw: st.DrawFn) -> list[Segment]:
    """What several servers leave: everything from 0 is covered, and much of it more than once."""
    ends = draw(st.lists(st.integers(1, 200), min_size=1, max_size=20, unique=True).map(sorted))
    chain = [segment(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    spans = st.tuples(st.integers(0, ends[-1] - 1), st.integers(1, 200))
    more = draw(st.lists(spans.map(lambda span: segment(span[0], min(ends[-1], span[0] + span[1]))), max_size=20))
    return sorted({*chain, *more})


@given(overlapping(), st.integers(0, 250), st.integers(0, 250))
def test_every_byte_is_read_once_and_in_order(segments: list[Segment], start: int, end: int) -> None:
    read = [(each, offset) for each, first, last in plan(segments, start, end) for offset in range(first, last)]
    assert [offset for _, offset in read] == list(range(start, min(end, segments[-1].end)))
    assert all(each.start <= offset < each.end for each, offset in read)


def test_what_lies_behind_a_gap_is_not_read() -> None:
    assert list(plan([segment(0, 10), segment(12, 20)], 0, 20)) == [(segment(0, 10), 0, 10)]


@given(overlapping())
def test_what_another_one_covers_may_go(segments: list[Segment]) -> None:
    kept = largest(segments)
    assert covered(kept) == covered(segments)
    assert kept == sorted(kept) and [each.start for each in kept] == sorted(each.start for each in kept)
    assert not [
        one for one in kept for other in kept if one != other and other.start <= one.start <= one.end <= other.end
    ]


@given(overlapping(), st.randoms())
def test_two_servers_with_other_views_remove_nothing_that_is_not_held_elsewhere(
    segments: list[Segment], chance: random.Random
) -> None:
    """Each removes what it finds covered among those it saw; what one of them did not see, it does not touch."""
    left = set(segments)
    for _ in range(3):
        seen = [each for each in segments if chance.random() < 0.7]
        left -= set(seen) - set(largest(seen))
    assert covered(list(left)) == covered(segments)


def test_few_are_left_alone() -> None:
    assert mergeable([segment(n, n + 1) for n in range(TOGETHER - 1)]) == []


def test_the_newest_small_ones_are_merged_and_older_large_ones_are_not() -> None:
    old = [segment(0, LEVELS[-1])]
    small = [segment(old[0].end + n, old[0].end + n + 1) for n in range(TOGETHER)]
    assert mergeable(old + small) == small


@settings(max_examples=25)
@given(st.lists(st.sampled_from([1, 100, 3000, 50_000, 700_000, 1 << 20, 9 << 20]), min_size=300, max_size=600))
def test_a_file_has_few_segments_and_its_bytes_are_seldom_written_again(sizes: list[int]) -> None:
    segments: list[Segment] = []
    written = end = 0
    for size in sizes:
        segments.append(segment(end, end := end + size))
        if chosen := mergeable(segments):
            merged = segment(chosen[0].start, chosen[-1].end)
            written += merged.size
            segments = [*segments[: -len(chosen)], merged]
    large = sum(each.size >= LEVELS[-1] for each in segments)
    assert len(segments) - large <= len(LEVELS) * (TOGETHER - 1) * (large + 1)
    assert written <= (len(LEVELS) + 1) * max(end, TOGETHER * LEVELS[-1])


def test_a_log_of_single_lines() -> None:
    """Some hours of a line each second."""
    segments: list[Segment] = []
    written = most = end = 0
    for _ in range(20_000):
        segments.append(segment(end, end := end + 80))
        if chosen := mergeable(segments):
            segments = [*segments[: -len(chosen)], segment(chosen[0].start, chosen[-1].end)]
            written += segments[-1].size
        most = max(most, len(segments))
    assert most < len(LEVELS) * TOGETHER
    assert written < 10 * end
