"""Which runs of a sweep are stopped early, by what, and which are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.model.wire import Claim
from runyard.yard.loops import MetricsLoop
from tests.integration.yard.conftest import NOTHING, Driver, ended
from tests.integration.yard.sweeping import Field

ASHA: dict[str, Any] = {"minimize": "loss", "stop": "asha"}


@pytest.fixture
def field(driver: Driver) -> Field:
    return Field(driver)


def lines(*values: float) -> list[dict[str, Any]]:
    return [{"t": 1.0, "step": step, "m": {"loss": value}} for step, value in enumerate(values, 1)]


def stopped(field: Field) -> list[int]:
    """The runs that are to end, in their order."""
    return sorted(stop.key.run for stop in field.driver.sync(free=NOTHING).stops)


def by_params(claims: list[Claim]) -> dict[int, list[Claim]]:
    found: dict[int, list[Claim]] = {}
    for claim in claims:
        found.setdefault(claim.spec["params"]["lr"], []).append(claim)
    return found


def end_stopped(field: Field, claim: Claim) -> None:
    field.end(claim, "stopped", stop_reason="early_stop", exit_code=None, signal=15)


def test_who_has_come_to_an_end_that_is_known_is_not_stopped(field: Field) -> None:
    """Points that arrive together: the run is on its way out already, whatever it was at an earlier step."""
    field.sweep(space={"lr": [1, 2, 3, 4]}, **ASHA)
    *before, late = field.claims()
    for claim in before:
        field.say(claim, *lines(1.0, 0.9, 0.8, 0.7, 0.6))
        field.end(claim)
    field.say(late, *lines(9.0, 9.0, 9.0, 9.0, 0.001))
    field.look()
    assert stopped(field) == []
    field.end(late)
    shown = field.show()
    assert (shown["best"]["number"], shown["best"]["value"]) == (4, 0.001)
    assert field.yard.sweeps.replay(1)["different"] == []


@pytest.mark.parametrize(("said", "stops"), [({}, 1), ({"last": 6}, 1), ({"last": 5}, 0)])
def test_the_first_ones_are_left_to_end_where_it_is_said_when_that_is(
    field: Field, said: dict[str, int], stops: int
) -> None:
    """Nobody has ended yet, so nothing else tells that these are on their way out."""
    field.sweep(space={"lr": [1, 2, 3]}, minimize="loss", stop={"rule": "asha", **said})
    claims = field.claims()
    for claim, value in zip(claims, (1.0, 2.0, 9.0), strict=True):
        field.say(claim, *lines(value, value, value, value, value))
        field.look()
    assert stopped(field) == [claim.key.run for claim in claims[3 - stops :]]
    assert field.yard.sweeps.replay(1)["different"] == []


def test_an_end_is_known_before_what_others_report_is_judged(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3, 4]}, **ASHA)
    *before, late = field.claims()
    for claim in before:
        field.say(claim, *lines(1.0, 0.9, 0.8))
    field.say(late, *lines(9.0, 9.0, 0.001))
    field.driver.sync(*map(ended, before), free=NOTHING)
    MetricsLoop(field.yard).tick()
    assert stopped(field) == []


def test_who_is_beyond_the_step_at_which_another_ended_is_judged(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3, 4]}, **ASHA)
    *before, late = field.claims()
    for claim in before:
        field.say(claim, *lines(1.0, 0.9, 0.8))
        field.end(claim)
    field.say(late, *lines(9.0, 9.0, 9.0, 9.0))
    field.look()
    assert stopped(field) == [late.key.run]


def test_a_run_that_ends_by_itself_after_it_was_judged_keeps_its_ending(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, **ASHA)
    one, two, three = field.claims()
    for claim, value in ((one, 1.0), (two, 2.0), (three, 9.0)):
        field.report(claim, 1, value)
    assert stopped(field) == [three.key.run]
    field.finish(three, 0.5, 2)
    assert field.driver.state(three.key.run) == ("succeeded", None)
    assert field.trials()[2]["value"] == 0.5
    assert field.show()["best"]["number"] == 3


def test_what_a_stopped_run_reported_last_is_no_result(field: Field) -> None:
    """It has not gone as far as the others; how far it came is chance."""
    field.sweep(space={"lr": [1, 2, 3]}, **ASHA)
    one, two, three = field.claims()
    for claim, value in ((one, 1.0), (two, 2.0), (three, 9.0)):
        field.report(claim, 1, value)
    field.report(three, 2, 0.001)
    end_stopped(field, three)
    for claim in (one, two):
        field.finish(claim, 0.5, 3)
    assert field.show()["best"]["number"] == 1
    assert field.trials()[2]["runs"][0]["value"] == 0.001, "it is shown"


# --- repetitions ------------------------------------------------------------------------------------------------------


def test_a_trial_is_judged_by_the_mean_of_its_repetitions(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, reps=2, **ASHA)
    claims = by_params(field.claims())
    for claim in (*claims[1], *claims[2]):
        field.report(claim, 1, 1.0)
    first, second = claims[3]
    field.report(first, 1, 9.0)
    assert stopped(field) == [], "the other repetition may be better"
    field.report(second, 1, 5.0)
    assert stopped(field) == [first.key.run, second.key.run]
    stop = next(line for line in field.yard.sweeps.decisions(1, 0, 100) if line["kind"] == "stop")
    assert (stop["body"]["value"], stop["body"]["n"]) == (7.0, 2)
    assert stop["body"]["low"] < 7.0 < stop["body"]["high"]
    assert field.yard.sweeps.replay(1) == {"decisions": 6, "different": []}


def test_a_bad_repetition_among_good_ones_stops_nothing(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, reps=2, **ASHA)
    claims = by_params(field.claims())
    for claim in (*claims[1], *claims[2]):
        field.report(claim, 1, 5.0)
    for claim, value in zip(claims[3], (9.0, 0.5), strict=True):
        field.report(claim, 1, value)
    assert stopped(field) == []


def test_a_repetition_that_cannot_come_any_more_is_not_awaited(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, reps=2, **ASHA)
    claims = by_params(field.claims())
    for claim in (*claims[1], *claims[2]):
        field.report(claim, 1, 1.0)
    lost, left = claims[3]
    field.end(lost, exit_code=1)
    field.report(left, 1, 9.0)
    assert stopped(field) == [left.key.run]
    assert field.yard.sweeps.replay(1)["different"] == []


def test_an_interval_that_is_wholly_worse_is_enough(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, reps=3, **ASHA)
    claims = by_params(field.claims())
    for claim in (*claims[1], *claims[2]):
        field.report(claim, 1, 1.0)
    first, second, third = claims[3]
    field.report(first, 1, 9.0)
    assert stopped(field) == []
    field.report(second, 1, 9.1)
    assert stopped(field) == [first.key.run, second.key.run, third.key.run]
    assert field.yard.sweeps.replay(1)["different"] == []


def test_repetitions_of_a_trial_run_together_where_trials_are_compared(field: Field) -> None:
    field.sweep(space={"lr": [1, 2]}, reps=2, parallel=3, **ASHA)
    claims = field.claims()
    assert [(claim.spec["params"]["lr"], claim.spec["index"]) for claim in claims] == [(1, 1), (1, 2), (2, 3)]


def test_all_repetitions_of_a_trial_are_stopped_together(field: Field) -> None:
    """Those that have not come so far, and those that are not made yet, too."""
    field.sweep(space={"lr": [1, 2, 3]}, reps=4, parallel=11, **ASHA)
    claims = by_params(field.claims())
    assert len(claims[3]) == 3
    for claim in (*claims[1], *claims[2]):
        field.report(claim, 1, 1.0)
    for claim in claims[3][:2]:
        field.report(claim, 1, 9.0)
    assert stopped(field) == [claim.key.run for claim in claims[3]]
    assert len(field.trials()[2]["runs"]) == 3
    for claim in claims[3]:
        end_stopped(field, claim)
    assert field.claims() == []
    assert [trial["state"] for trial in field.trials()] == ["running", "running", "stopped"]


def test_a_repetition_at_a_known_end_is_left_alone_when_its_trial_is_stopped(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, reps=2, **ASHA)
    claims = by_params(field.claims())
    for claim in (*claims[1], *claims[2]):
        field.say(claim, *lines(1.0, 0.9, 0.8))
        field.end(claim)
    through, begun = claims[3]
    field.say(through, *lines(9.0, 9.0, 9.0))
    field.look()
    field.report(begun, 1, 9.0)
    assert stopped(field) == [begun.key.run]
    field.end(through)
    assert field.driver.state(through.key.run) == ("succeeded", None)
