"""Which attempts have a permit, and what silence means for them: the tables of `runyard.yard.agents.permits`."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from runyard.yard.agents import permits
from runyard.yard.agents.permits import MARGIN_S, AttemptFate, Vigil

TWICE = {"retry": {"max": 2}}


def site(kind: str, served_by: str) -> Any:
    return SimpleNamespace(kind=kind, config=json.dumps({"served_by": served_by}))


@pytest.mark.parametrize(
    ("kind", "served_by", "wanted", "failures", "expected"),
    [
        ("ssh", "yard", TWICE, 0, 120),
        ("ssh", "agent", TWICE, 1, 120),
        ("local", "agent", TWICE, 0, 120),
        ("local", "yard", TWICE, 0, None),  # falls silent with the yard
        ("slurm", "yard", TWICE, 0, None),  # has a scheduler's word
        ("ssh", "yard", TWICE, 2, None),  # the last one that the rule allows
        ("ssh", "yard", {}, 0, None),
        ("ssh", "yard", {"retry": {"max": 0}}, 0, None),
        ("ssh", "yard", {"retry": {"max": 2, "on": ["error"]}}, 0, None),
        ("ssh", "yard", {"retry": {"max": 2, "on": ["error", "lost"]}}, 0, 120),
        ("ssh", "yard", {"checkpoint": {"max_attempts": 100}}, 7, 120),  # goes on by itself after a loss
        ("slurm", "yard", {"checkpoint": {"max_attempts": 100}}, 0, None),
    ],
)
def test_who_has_a_permit(kind: str, served_by: str, wanted: Any, failures: int, expected: float | None) -> None:
    agent: Any = SimpleNamespace(lease=0)
    assert permits.granted(site(kind, served_by), agent, wanted, failures, 120) == expected
    assert permits.granted(site(kind, served_by), agent, wanted, failures, 0) is None


def test_an_agent_that_comes_once_in_a_while_may_miss_a_turn() -> None:
    agent: Any = SimpleNamespace(lease=300)
    assert permits.granted(site("ssh", "agent"), agent, TWICE, 0, 120) == 600


@pytest.mark.parametrize(
    ("silent_for", "permit", "expected"),
    [
        (0, 120, AttemptFate.GOES_ON),
        (120, 120, AttemptFate.GOES_ON),
        (120 + 10 + MARGIN_S - 1, 120, AttemptFate.GOES_ON),
        (120 + 10 + MARGIN_S, 120, AttemptFate.GONE),
        (100_000, 120, AttemptFate.GONE),
        (2000, 120_000, AttemptFate.GOES_ON),  # `lost_after` is for those without a permit
        (999, None, AttemptFate.GOES_ON),
        (1001, None, AttemptFate.LOST),
        (-50, 120, AttemptFate.GOES_ON),
    ],
)
def test_what_silence_means(silent_for: float, permit: float | None, expected: AttemptFate) -> None:
    assert permits.fate(silent_for, permit, grace=10, lost_after=1000) is expected


def test_silence_counts_while_somebody_listens_to_a_clock_that_nobody_sets() -> None:
    wall, steady = [5000.0], [70.0]
    vigil = Vigil(lambda: wall[0], lambda: steady[0])
    wall[0], steady[0] = 6000.0, 1070.0
    assert vigil.since() == 5000.0, "it has listened all the time"
    wall[0], steady[0] = 9000.0, 1071.0
    assert vigil.since() == 9000.0, "the clock was set"
    wall[0], steady[0] = 9100.0, 1171.0
    assert vigil.since() == 9000.0
    wall[0], steady[0] = 8000.0, 1172.0
    assert vigil.since() == 8000.0, "and set back"


def test_a_break_is_no_time_in_which_agents_could_be_heard() -> None:
    steady = [70.0]
    vigil = Vigil(lambda: 5000.0 + steady[0], lambda: steady[0])
    for steady[0] in (75.0, 80.0, 105.0):
        assert vigil.listening_for() == steady[0] - 70.0
    steady[0] = 90_000.0
    assert vigil.listening_for() == 0.0, "as after an outage of the store"
    steady[0] = 90_005.0
    assert vigil.listening_for() == 5.0
