"""Lists of numbers in the notation of users and schedulers."""

from __future__ import annotations

from collections.abc import Iterable


def show(numbers: Iterable[int]) -> str:
    """`1-4,7` from 1, 2, 3, 4 and 7: as selectors of runs, `--array` and `-t` understand them."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
