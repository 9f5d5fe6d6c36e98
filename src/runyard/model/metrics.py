"""What runs report of themselves: lines of `metrics.jsonl`, one JSON object each.

    {"t": 1763181001.2, "step": 3, "m": {"loss": 0.1, "val/acc": 0.5}}
    {"t": 1763181009.0, "summary": {"acc": 0.9}}

The lines are written by programs of all kinds, so whatever is no such line, or no number, is passed over. A number in a
summary is also a value of the metric of that name: the last one, without a step.
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
LONGEST_LINE = 1 << 20  # bytes; a longer one is no line of metrics
SLICE = 32 << 10  # bytes
LONGEST_NAME = 250  # characters
MOST_NAMES = 10_000  # that a run may have; values of others are counted and not kept
LONGEST_TEXT = 1000  # characters of a text in a summary
_FAR = 1 << 53  # up to here every whole number is a float
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # what no terminal, or no store, takes


class Point(NamedTuple):
    """One value. Steps say what came first; clocks are set back now and then."""

    step: float | None  # whole ones are int
    at: float  # seconds since 1970 by the run's clock, 0 where it did not say
    name: str
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """What some lines say, in their order."""

    points: list[Point] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)


def parse(data: bytes) -> Reported:
    """Whole lines."""
    found = Reported()
    for document in _documents(data):
        if isinstance(document, dict):
            _add(found, document)
    return found


def whole(data: bytes) -> int:
    """How many bytes from the start are whole lines. What has no end within reason is no line: it is passed over piece
    by piece, and so is its rest, which is not JSON."""
    return data.rfind(b"\n") + 1 or (len(data) if len(data) >= LONGEST_LINE else 0)


def slices(data: bytes) -> Iterator[Reported]:
    """Whole lines, some at a time: parsing those takes a millisecond, in which no other thread does anything."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + SLICE) + 1 or len(data)
        yield parse(data[start:end])
        start = end


def name_of(text: str) -> str:
    """A metric's name as it is kept: any text, but for characters that nothing can show, and not without end."""
    return _UNFIT.sub("\ufffd", text[:LONGEST_NAME]) or "\ufffd"


_new = tuple.__new__  # a third of the time that calling the class takes
_known_name = functools.lru_cache(4096)(name_of)


def to_json(value: float | None) -> float | str | None:
    """JSON has no NaN and no infinities, so they travel as texts. Whole numbers come back as such."""
    if value is None or isinstance(value, int):
        return value
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def from_json(value: float | str | None) -> float:
    """The other way; null is no number."""
    return math.nan if value is None else float(value)


def step_of(value: float | None) -> float | None:
    """A step as people write it: whole ones without a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _documents(data: bytes) -> Iterable[Any]:
    """All lines at once, which is twice as quick, where each of them is one document."""
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
    """Runs may report ten thousand lines a second: what they usually hold is looked at first."""
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
