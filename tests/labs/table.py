"""The tables at the end of a test run: each real component, its version, how many tests talked to it; where the time
went."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.labs import components


@dataclass(frozen=True, kw_only=True)
class Found:
    version: str | None = None
    missing: str = ""


@functools.cache
def look_up(name: str) -> Found:
    try:
        return Found(version=components.KNOWN[name].find())
    except components.Missing as error:
        return Found(missing=str(error))


def used(report: Any, key: str) -> Iterator[tuple[str, str | None]]:
    """What a report says that its test used: user properties travel from xdist's workers with the report."""
    for name, value in getattr(report, "user_properties", ()):
        if name == key:
            yield value[0], value[1]


def lines(reports: Iterable[Any], key: str) -> Iterator[str]:
    tests: dict[str, set[str]] = {}
    for report in reports:
        for name, _ in used(report, key):
            tests.setdefault(name, set()).add(report.nodeid)
    for name in filter(tests.get, components.KNOWN):
        yield _line(name, len(tests[name]))
    if not tests:
        yield "none of these tests needs one"


def times(reports: Iterable[Any]) -> Iterator[str]:
    """Per room, and the ten slowest tests; setup and teardown included."""
    tests: Counter[str] = Counter()
    for report in reports:
        if hasattr(report, "duration"):
            tests[report.nodeid.partition("@")[0]] += report.duration  # behind it xdist writes the group
    rooms: dict[str, list[float]] = {}
    for test, seconds in tests.items():
        rooms.setdefault("/".join(test.split("/")[:2]), []).append(seconds)
    for room, all_seconds in sorted(rooms.items()):
        yield f"{room:<20} {sum(all_seconds):8.0f} s in {len(all_seconds)} tests"
    for test, seconds in tests.most_common(10):
        yield f"{seconds:8.1f} s  {test}"


def _line(name: str, count: int) -> str:
    found = look_up(name)
    tests = f"{count} test{'s' if count != 1 else ''}"
    what = f"skipped {tests}: {found.missing}" if found.version is None else f"ran {tests}"
    return f"{name:<14} {found.version or '-':<22} {what}"
