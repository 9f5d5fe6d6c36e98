"""The table at the end of a test run: each real component, its version, how many tests talked to it."""

from __future__ import annotations

import functools
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
    ran: dict[str, set[str]] = {name: set() for name in components.KNOWN}
    skipped: dict[str, set[str]] = {name: set() for name in components.KNOWN}
    for report in reports:
        for name, version in used(report, key):
            (skipped if version is None else ran)[name].add(report.nodeid)
    for name in components.KNOWN:
        yield _line(name, len(ran[name]), len(skipped[name]))


def _line(name: str, ran: int, skipped: int) -> str:
    found = look_up(name)
    if found.version is None:
        what = f"skipped {skipped} tests: {found.missing}" if skipped else f"not needed, and missing: {found.missing}"
    else:
        what = f"ran {ran} test{'s' if ran != 1 else ''}"
    return f"{name:<14} {found.version or '-':<22} {what}"
