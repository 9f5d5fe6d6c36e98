"""Update the summary rows, one for each metric name, with new points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from runyard.model.metrics import MOST_NAMES, Point
from runyard.model.wire import AttemptKey
from runyard.store import metrics
from runyard.store.rows import AnyRow

MOST_SUMMARY = 1_000  # entries of a run's summary

Tally = dict[str, Any]


def add(connection: Connection, key: AttemptKey, points: Sequence[Point]) -> int:
    """Sum them up; returns how many were left out, because their run has too many names."""
    series = _by_name(points)
    known = metrics.named(connection, key.run, series)
    new = [name for name in series if name not in known]
    room = max(0, MOST_NAMES - metrics.count_names(connection, key.run)) if new else 0
    repeated = _repeated(key, points, known) if key.attempt > 1 else {}
    metrics.add(connection, [count(key, name, series[name]) for name in new[:room]])
    changed = [joined(row, count(key, name, series[name]), repeated.get(name, 0)) for name, row in known.items()]
    metrics.change(connection, changed)
    return sum(len(series[name]) for name in new[room:])


def summarise(connection: Connection, run_id: int, summary: Mapping[str, Any]) -> None:
    """Later values replace earlier ones."""
    whole = {**metrics.summary_of(connection, run_id), **summary}
    metrics.put_summary(connection, run_id, dict(list(whole.items())[:MOST_SUMMARY]))


def _by_name(points: Iterable[Point]) -> dict[str, list[Point]]:
    series: dict[str, list[Point]] = {}
    for point in points:
        series.setdefault(point.name, []).append(point)
    return series


def count(key: AttemptKey, name: str, points: Sequence[Point]) -> Tally:
    """A row for one name, from these points alone."""
    numbers = [point.value for point in points if point.value == point.value]
    steps = [point.step for point in points if point.step is not None]
    last = points[-1]
    return {
        "run_id": key.run,
        "name": name,
        "count": len(points),
        "first": _kept(points[0].value),
        "last": _kept(last.value),
        "minimum": min(numbers, default=None),
        "maximum": max(numbers, default=None),
        "last_step": last.step,
        "last_at": last.at,
        "attempt": key.attempt,
        "reached": max(steps, default=None),
        "known": None,
    }


def joined(row: AnyRow, tally: Tally, repeated: int) -> Tally:
    """Merge a row with new points, of which so many repeat known steps."""
    return {
        **tally,
        "count": row.count + tally["count"] - repeated,
        "minimum": _least(row.minimum, tally["minimum"]),
        "maximum": _most(row.maximum, tally["maximum"]),
        "attempt": max(row.attempt, tally["attempt"]),
        "reached": _most(row.reached, tally["reached"]),
        "known": _known(row, tally["attempt"]),
    }


def _repeated(key: AttemptKey, points: Iterable[Point], rows: Mapping[str, AnyRow]) -> dict[str, int]:
    """An attempt that continues from a checkpoint repeats steps that an earlier one reported after it."""
    limits = {name: _known(row, key.attempt) for name, row in rows.items()}
    found: dict[str, int] = {}
    for point in points:
        limit = limits.get(point.name)
        if limit is not None and point.step is not None and point.step <= limit:
            found[point.name] = found.get(point.name, 0) + 1
    return found


def _known(row: AnyRow, attempt: int) -> float | None:
    """The highest step of attempts before this one."""
    known: float | None = row.reached if attempt > row.attempt else row.known
    return known


def _least(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _most(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _kept(value: float) -> float | None:
    return None if math.isnan(value) else value
