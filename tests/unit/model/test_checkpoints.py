"""When checkpoints come to the yard, and what is one."""

from __future__ import annotations

import re

import pytest

from runyard import errors
from runyard.model import checkpoints
from runyard.model.checkpoints import Checkpoint, Policy
from runyard.model.values import Switch


@pytest.mark.parametrize("name", ["last.pt", "tmp/x", "model.tmp/weights", "partial.pt", "a.b", ".hidden"])
def test_whole_files(name: str) -> None:
    assert re.fullmatch(checkpoints.WHOLE, name, re.DOTALL)


@pytest.mark.parametrize("name", ["x.tmp", "d/x.part", ".nfs00", "a~", "d/.~lock", "x.incomplete", "d/e/.x.swp"])
def test_half_files(name: str) -> None:
    assert not re.fullmatch(checkpoints.WHOLE, name, re.DOTALL)


@pytest.mark.parametrize(
    ("said", "is_shared", "expected"),
    [
        ("", False, Policy(every=600)),
        ("", True, Policy()),
        ("end", False, Policy()),
        ("2m", True, Policy(every=120)),
        ("never", False, Policy(at_end=False)),
    ],
)
def test_when_they_are_sent(said: str, is_shared: bool, expected: Policy) -> None:
    assert checkpoints.policy(said, is_shared=is_shared) == expected


@pytest.mark.parametrize("value", ["soon", -1, "0s", [], "40d"])
def test_a_time_that_cannot_be_read(value: object) -> None:
    with pytest.raises(errors.InvalidInput):
        Checkpoint.parse({"every": value})


def test_what_is_usual_is_not_written_down() -> None:
    usual = Switch(Checkpoint).parse(True, "checkpoint")
    assert set(usual.to_json()) == {"signal", "grace", "max_attempts"}
    told = {"every": "2m", "keep": 5, "prune": ["step-*.pt"]}
    made = Checkpoint.parse(told)
    assert made.to_json().items() >= told.items()
    assert Checkpoint.parse(made.to_json()) == made
