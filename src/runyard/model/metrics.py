"""Metrics reported by runs: lines of `metrics.jsonl`, one JSON object each.

    {"t": 1763181001.2, "step": 3, "m": {"loss": 0.1, "val/acc": 0.5}}
    {"t": 1763181009.0, "summary": {"acc": 0.9}}

The lines are written by any program, so invalid lines and values that are no numbers are skipped. A number in a
summary is also the last value of the metric of that name, without a step.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FILE = "metrics.jsonl"
LONGEST_LINE = 1 << 20  # bytes; a longer line is skipped
SLICE = 32 << 10  # bytes
LONGEST_NAME = 250  # characters
MOST_NAMES = 10_000  # metrics of a run; values of others are counted and not stored
LONGEST_TEXT = 1000  # characters of a text in a summary
_FAR = 1 << 53  # up to here every whole number is a float
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # unfit for terminals or the store


class Point(NamedTuple):
    """One value. Steps give the order; clocks may be set back."""

    step: float | None  # whole ones are int
    at: float  # seconds since 1970 by the run's clock, 0 if not given
    name: str
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """The contents of some lines, in order."""

    points: list[Point] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)


def parse(data: bytes) -> Reported:
    """Parses whole lines."""
    found = Reported()
    for document in _documents(data):
        if isinstance(document, dict):
            _add(found, document)
    return found


def whole(data: bytes) -> int:
    """How many bytes from the start are whole lines. A line that is too long is skipped in pieces, and so is its rest,
    which is not JSON."""
    return data.rfind(b"\n") + 1 or (len(data) if len(data) >= LONGEST_LINE else 0)


def slices(data: bytes) -> Iterator[Reported]:
    """Whole lines in chunks that take a millisecond to parse, so that other threads are not blocked for longer."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + SLICE) + 1 or len(data)
        yield parse(data[start:end])
        start = end


def name_of(text: str) -> str:
    """A metric's name as it is stored: shortened, and without control characters."""
    return _UNFIT.sub("\ufffd", text[:LONGEST_NAME]) or "\ufffd"


_new = tuple.__new__  # a third of the time that calling the class takes
_known_name = functools.lru_cache(4096)(name_of)


def to_json(value: float | None) -> float | str | None:
    """JSON has no NaN and no infinities, so they are strings. Whole numbers stay whole."""
    if value is None or isinstance(value, int):
        return value
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def from_json(value: float | str | None) -> float:
    """The inverse of `to_json`; null is NaN."""
    return math.nan if value is None else float(value)


def step_of(value: float | None) -> float | None:
    """A step as shown: whole ones without a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _documents(data: bytes) -> Iterable[Any]:
    """All lines at once, which is twice as fast, if each is one document."""
    lines = [line for line in data.split(b"\n") if line and not line.isspace()]
    try:
        documents = json.loads((b"[%b]" % b",".join(lines)).decode())
    except (ValueError, RecursionError):
        return [_document(line) for line in lines]
    return documents if len(documents) == len(lines) else [_document(line) for line in lines]


def _document(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _add(found: Reported, document: Mapping[str, Any]) -> None:
    """Runs may report ten thousand lines a second: the usual contents are checked first."""
    at, step = document.get("t"), document.get("step")
    at = at if type(at) is float and 0.0 < at < _FAR else _finite(at) or 0.0
    step = step if type(step) is int and -_FAR < step < _FAR else step_of(_finite(step))
    values, summary = document.get("m"), document.get("summary")
    if type(values) is dict:
        _add_points(found.points, step, at, values)
    if type(summary) is dict:
        found.summary.update(_summary(summary))
        _add_points(found.points, None, at, summary)


def _add_points(points: list[Point], step: float | None, at: float, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        number = value if type(value) is float else _number(value)
        if number is not None:
            points.append(_new(Point, (step, at, _known_name(name), number)))


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _finite(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and math.isfinite(number) else None


def _summary(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name_of(name): _plain(value) for name, value in values.items() if not isinstance(value, (dict, list))}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _UNFIT.sub("\ufffd", value[:LONGEST_TEXT])
    return value if value is None or isinstance(value, bool) else _number(value)
