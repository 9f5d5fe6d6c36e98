"""Early stopping as a pure function of what runs have reported."""

from __future__ import annotations

import math

import pytest

from runyard.model.metrics import Point
from runyard.model.sweep.objective import Goal, Objective
from runyard.model.sweep.stopping import Stopping
from runyard.yard.sweeps import rungs
from runyard.yard.sweeps.decision_log import Decision, DecisionKind, History
from runyard.yard.sweeps.rungs import Reached, Standing

SMALL, LARGE = Objective(metric="loss"), Objective(metric="acc", goal=Goal.MAXIMIZE)


def history(values: list[float], rung: int = 0) -> History:
    found = History()
    for trial, value in enumerate(values, 1):
        found.add(seen(trial, value, rung))
    return found


def seen(
    trial: int, value: float, rung: int = 0, *, newest: float | None = None, awaited: int = 0, over: bool = False
) -> Decision:
    standing = Standing(newest=newest or 3**rung, awaited=awaited, over=over)
    return rungs.rung(trial, 100 + trial, "loss", Reached(rung=rung, step=3**rung, value=value), standing)


@pytest.mark.parametrize("step", [0.5, 1, 2, 3, 8, 9, 26, 27, 28, 242, 243, 3**20, 3**20 - 1])
def test_the_rung_of_a_step(step: float) -> None:
    number = Stopping.parse("asha").rung(step)
    assert (number is None) == (step < 1)
    if number is not None:
        assert 3**number <= step < 3 ** (number + 1)


def test_a_jump_counts_at_the_highest_rung_only() -> None:
    found = rungs.reached(Stopping.parse("asha"), -1, [(10, 0.5), (11, 0.4), (30, 0.3)])
    assert [(one.rung, one.step) for one in found] == [(2, 10), (3, 30)]
    assert rungs.reached(Stopping.parse("asha"), 2, [(1, 9.0), (10, 0.5)]) == []


def test_points_without_steps_are_counted() -> None:
    points = [Point(None, 0.0, "loss", value) for value in (3.0, 2.0)]
    assert rungs.numbered(points, 7, has_steps=False) == [(6.0, 3.0), (7.0, 2.0)]


def test_a_summary_is_no_step_further() -> None:
    points = [Point(26, 0.0, "loss", 3.0), Point(None, 0.0, "loss", 2.5)]
    assert rungs.numbered(points, 27, has_steps=True) == [(26.0, 3.0)]


@pytest.mark.parametrize(
    ("objective", "values", "stops"),
    [
        (SMALL, [1.0, 2.0], False),  # too few to say
        (SMALL, [1.0, 2.0, 3.0], True),
        (SMALL, [3.0, 2.0, 1.0], False),
        (SMALL, [1.0, 1.0, 1.0], False),
        (SMALL, [1.0, 2.0, 3.0, 4.0, 5.0, 1.5], False),  # among the best two of six
        (LARGE, [1.0, 2.0, 3.0], False),
        (LARGE, [3.0, 2.0, 1.0], True),
        (SMALL, [1.0, 2.0, math.nan], True),
        (SMALL, [1.0, 2.0, math.inf], True),
        (SMALL, [math.nan, math.nan, math.nan], False),
    ],
)
def test_the_best_third_go_on(objective: Objective, values: list[float], stops: bool) -> None:
    last = seen(len(values), values[-1])
    stop = rungs.judge(1, Stopping.parse("asha"), objective, history(values), last)
    assert (stop is not None) == stops


def test_a_stop_says_why() -> None:
    stop = rungs.judge(7, Stopping.parse("asha"), SMALL, history([0.42, 0.5, 0.81], 2), seen(3, 0.81, 2))
    assert stop is not None
    assert stop.kind is DecisionKind.STOP
    assert stop.body["detail"] == "stopped by sweep S7 at step 9: loss 0.81, worse than the best third (0.42)"


def test_the_median_of_the_others() -> None:
    rule = Stopping.parse({"rule": "median", "trials": 3})
    assert rungs.judge(1, rule, SMALL, history([1.0, 2.0, 3.0, 2.5]), seen(4, 2.5)) is not None
    assert rungs.judge(1, rule, SMALL, history([1.0, 2.0, 3.0, 2.0]), seen(4, 2.0)) is None
    assert rungs.judge(1, rule, SMALL, history([1.0, 2.0, 9.0]), seen(3, 9.0)) is None


def test_repetitions_are_judged_by_their_mean() -> None:
    known = history([1.0, 2.0, 9.0])
    known.add(Decision(kind=DecisionKind.RUNG, trial=3, run_id=200, body=seen(3, -8.5).body))
    assert rungs.judge(1, Stopping.parse("asha"), SMALL, known, seen(3, -8.5)) is None


def test_who_is_through_is_not_stopped() -> None:
    known = history([1.0, 2.0, 3.0], 2)
    rows = [{"run": 101, "rep": 1, "state": "succeeded", "reason": None, "value": 1.0, "step": 9}]
    known.add(Decision(kind=DecisionKind.TELL, trial=1, body={"state": "complete", "value": 1.0, "n": 1, "rows": rows}))
    asha = Stopping.parse("asha")
    assert rungs.judge(1, asha, SMALL, known, seen(3, 3.0, 2)) is None
    assert rungs.judge(1, asha, SMALL, known, seen(3, 3.0, 2, newest=10)) is not None
    assert rungs.judge(1, asha, SMALL, known, seen(3, 3.0, 2, newest=10, over=True)) is None


def test_who_has_come_to_the_last_step_is_not_stopped_though_none_has_ended() -> None:
    rule, known = Stopping.parse({"rule": "asha", "last": 9}), history([1.0, 2.0, 3.0])
    assert rungs.judge(1, rule, SMALL, known, seen(3, 3.0, newest=8)) is not None
    assert rungs.judge(1, rule, SMALL, known, seen(3, 3.0, newest=9)) is None
    assert rungs.judge(1, rule, SMALL, known, seen(3, 3.0, newest=10)) is None


def test_repetitions_are_awaited_unless_all_that_is_likely_is_worse() -> None:
    asha, known = Stopping.parse("asha"), history([1.0, 2.0, 9.0])
    assert rungs.judge(1, asha, SMALL, known, seen(3, 9.0, awaited=1)) is None, "one value has no interval"
    for value, stops in ((-8.5, False), (9.1, True)):
        more = known.with_tail([Decision(kind=DecisionKind.RUNG, trial=3, run_id=200, body=seen(3, value).body)])
        assert (rungs.judge(1, asha, SMALL, more, seen(3, value, awaited=1)) is not None) == stops


def test_a_tail_changes_nothing_before_it() -> None:
    before = history([1.0])
    after = before.with_tail([seen(2, 2.0)])
    assert set(before.rungs[0]) == {1}
    assert set(after.rungs[0]) == {1, 2}
