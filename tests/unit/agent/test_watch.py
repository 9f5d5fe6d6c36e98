"""The table of evidence, every row of it."""

from __future__ import annotations

import itertools

import pytest

from runyard.agent.watch import Verdict, judge
from runyard.backends.base import Presence

ABSENT, PENDING, ALIVE, GONE, UNKNOWN = Presence


@pytest.mark.parametrize(
    ("started", "recorded", "presence", "verdict"),
    [
        (False, False, ABSENT, Verdict.NOT_STARTED),
        (False, False, PENDING, Verdict.PENDING),
        (False, False, UNKNOWN, Verdict.PENDING),
        (False, False, GONE, Verdict.OVER),
        (True, False, ALIVE, Verdict.RUNNING),
        (True, False, GONE, Verdict.OVER),
        (True, False, UNKNOWN, Verdict.DOUBTFUL),
        (True, False, ABSENT, Verdict.DOUBTFUL),
        (True, True, UNKNOWN, Verdict.OVER),
    ],
)
def test_the_table(started: bool, recorded: bool, presence: Presence, verdict: Verdict) -> None:
    assert judge(started=started, recorded=recorded, presence=presence) is verdict


def test_a_record_is_the_last_word() -> None:
    for started, presence, ran in itertools.product((False, True), Presence, (False, True)):
        assert judge(started=started, recorded=True, presence=presence, was_running=ran) is Verdict.OVER


def test_doubt_never_ends_or_starts_anything() -> None:
    for started, ran in itertools.product((False, True), repeat=2):
        verdict = judge(started=started, recorded=False, presence=UNKNOWN, was_running=ran)
        assert verdict in (Verdict.PENDING, Verdict.DOUBTFUL)


def test_what_ran_once_is_never_started_again() -> None:
    for started, recorded, presence in itertools.product((False, True), (False, True), Presence):
        verdict = judge(started=started, recorded=recorded, presence=presence, was_running=True)
        assert verdict is not Verdict.NOT_STARTED
    assert judge(started=False, recorded=False, presence=ABSENT, was_running=True) is Verdict.OVER
