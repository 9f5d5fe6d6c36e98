"""Patterns are checked before anything is submitted."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model.metric_patterns import LONGEST, MOST, MetricPatterns
from runyard.model.spec import RunSpec

GOOD = r"loss=(?P<loss>\S+)"


@pytest.mark.parametrize("pattern", [GOOD, r"(?P<name>\w+)=(?P<value>\S+)", r"(?P<epoch>\d+) (?P<acc>\S+)"])
def test_good_ones(pattern: str) -> None:
    assert MetricPatterns.parse({"stdout": [pattern]}).stdout == (pattern,)


def test_one_may_come_without_a_list() -> None:
    spec = RunSpec.parse({"command": "x", "metrics": {"stdout": GOOD}})
    assert spec.to_json()["metrics"] == {"stdout": [GOOD]}
    assert RunSpec.parse(spec.to_json()) == spec
    assert "metrics" not in RunSpec.parse({"command": "x", "metrics": {"stdout": []}}).to_json()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"stdout": ["("]}, "is not a regular expression"),
        ({"stdout": ["loss=(.*)"]}, "has no named group for a value"),
        ({"stdout": [r"(?P<step>\d+)"]}, "has no named group for a value"),
        ({"stdout": [r"(?P<name>\w+)"]}, "has one of the groups 'name' and 'value'"),
        ({"stdout": ["(?P<a b>x)"]}, "is not a regular expression"),
        ({"stdout": ["(?P<a>x{99999999999999999999})"]}, "is not a regular expression"),
        ({"stdout": ["(" * 20_000]}, f"longer than {LONGEST} characters"),
        ({"stdout": [3]}, "must be a text"),
        ({"stdout": 3}, "must be a list"),
        ({"stdout": [f"(?P<a{i}>x)" for i in range(MOST + 1)]}, f"is more than {MOST}"),
        ({"stderr": [GOOD]}, "unknown field 'stderr'"),
        ([GOOD], "must be a mapping"),
    ],
)
def test_bad_ones(value: object, told: str) -> None:
    with pytest.raises(errors.InvalidInput, match=told):
        RunSpec.parse({"command": "x", "metrics": value})
