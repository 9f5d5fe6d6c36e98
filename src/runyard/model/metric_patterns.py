"""Metrics that a run only prints: patterns for the lines of its log, checked before anything is submitted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runyard import errors
from runyard.model import fields

MOST = 20
LONGEST = 500
STEPS = ("step", "global_step", "epoch")  # groups that say when, see runner/metrics/points.py
NAME, VALUE = "name", "value"  # two groups that together are one metric, whatever it is called

_EXAMPLE = r"name what to take, such as loss=(?P<loss>\S+)"


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricPatterns:
    """Regular expressions with named groups: each group is a metric, `step` or `epoch` its place."""

    stdout: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: object) -> MetricPatterns:
        given = fields.mapping(value, "metrics", ("stdout",))
        said = given.get("stdout") or []
        patterns = [said] if isinstance(said, str) else said
        return cls(stdout=tuple(dict.fromkeys(map(_checked, fields.texts(patterns, "metrics.stdout", LONGEST)))))

    def __post_init__(self) -> None:
        fields.at_most(len(self.stdout), "metrics.stdout: the number of patterns", MOST)

    def to_json(self) -> dict[str, Sequence[str]]:
        return {"stdout": list(self.stdout)}


def _checked(pattern: str) -> str:
    try:
        groups = set(re.compile(pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as error:
        raise errors.InvalidInput(f"metrics.stdout: {pattern!r} is no regular expression: {error}", _EXAMPLE) from None
    if (NAME in groups) != (VALUE in groups):
        raise errors.InvalidInput(
            f"metrics.stdout: {pattern!r} has one of the groups 'name' and 'value'", "give both, or other names"
        )
    if not groups.difference(STEPS):
        raise errors.InvalidInput(f"metrics.stdout: {pattern!r} has no named group for a value", _EXAMPLE)
    return pattern
