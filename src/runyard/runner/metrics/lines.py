"""metrics.jsonl of the user's own: one JSON object per line, in any form, or in ours."""

import json
from typing import Any, Dict, Iterator, Optional, Tuple

from . import tail
from .points import MetricPoint, Number, Points, as_moment, as_step, from_fields, number

_DEEPEST = 5


class JsonLines:
    def __init__(self, file: tail.Tail) -> None:
        self._file = file
        self._is_ours = True
        self.more = False

    def read(self, is_last: bool) -> Points:
        lines = self._file.lines(is_last) if self._is_ours else []
        self._is_ours = lines is not None
        points: Points = []
        for line in lines or ():
            points.extend(parse(line))
        self.more = bool(lines) and not self._file.is_at_end
        return points


def parse(line: bytes) -> Iterator[MetricPoint]:
    """Nothing for a line that is no object, or has no numbers in it."""
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("m"), dict) or isinstance(value.get("summary"), dict):
        yield from _own_form(value)
    else:
        point = from_fields(dict(_flat(value)))
        if point.values:
            yield point


def _own_form(value: Dict[str, Any]) -> Iterator[MetricPoint]:
    at = as_moment(number(value.get("t")))
    for key in ("m", "summary"):
        values = dict(_flat(value[key])) if isinstance(value.get(key), dict) else {}
        if values:
            step = as_step(number(value.get("step"))) if key == "m" else None
            yield MetricPoint(values, step, at, is_summary=key == "summary")


def _flat(value: Dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[Tuple[str, Number]]:
    for name, item in value.items():
        found: Optional[Number] = number(item)
        if found is not None:
            yield prefix + name, found
        elif isinstance(item, dict) and depth < _DEEPEST:
            yield from _flat(item, prefix + name + "/", depth + 1)
