"""Patterns that read metrics from the lines of a log, validated at submission."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model import fields
from runyard.model.declaration import Declared, Option, Reads, field
from runyard.model.json_schema import Schema, listed, text
from runyard.model.values import Checked

MOST = 20
LONGEST = 500
STEPS = ("step", "global_step", "epoch")  # groups that say when, see runner/metrics/points.py
NAME, VALUE = "name", "value"  # two groups that together give one metric of any name

_SHAPE: Schema = {
    "anyOf": [text(minLength=1, maxLength=LONGEST), listed(text(maxLength=LONGEST), maxItems=MOST)],
}
_EXAMPLE = r"name the group, such as loss=(?P<loss>\S+)"


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricPatterns(Declared):
    """Regular expressions with named groups: each group is a metric, `step` or `epoch` its step."""

    place: ClassVar[str] = "metrics"
    about: ClassVar[str] = "Where metrics are read from, beside the files below $OUTPUT_DIR."

    stdout: tuple[str, ...] = field(
        Checked(lambda value, where: _patterns(value, where), _SHAPE), default=(),
        help="Regular expressions for lines of the log; each named group is a metric",
        option=Option(
            "--metric-pattern", "REGEX",
            r"Read metrics from the log, such as 'loss=(?P<loss>\S+)'. Repeatable.", Reads.LIST,
        ),
    )  # fmt: skip

    def __post_init__(self) -> None:
        fields.at_most(len(self.stdout), "metrics.stdout: the number of patterns", MOST)


def _patterns(value: object, where: str) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) and value else value or []
    return tuple(dict.fromkeys(map(_checked, fields.texts(patterns, where, LONGEST))))


def _checked(pattern: str) -> str:
    try:
        groups = set(re.compile(pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as error:
        raise errors.InvalidInput(
            f"metrics.stdout: {pattern!r} is not a regular expression: {error}", _EXAMPLE
        ) from None
    if (NAME in groups) != (VALUE in groups):
        raise errors.InvalidInput(
            f"metrics.stdout: {pattern!r} has one of the groups 'name' and 'value'", "give both, or other names"
        )
    if not groups.difference(STEPS):
        raise errors.InvalidInput(f"metrics.stdout: {pattern!r} has no named group for a value", _EXAMPLE)
    return pattern
