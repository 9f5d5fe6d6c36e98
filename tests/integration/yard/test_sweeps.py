"""Sweeps in the yard: handed in, handed in again, fed, told, stopped early, and made again from their log."""

from __future__ import annotations

import importlib.util
import json
import math
from typing import Any

import pytest

from runyard import errors
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.document import Method
from runyard.model.sweep.objective import At, Goal, Objective
from runyard.model.wire import Claim
from runyard.yard.sweeps import search
from tests.integration.yard.conftest import NOTHING, Driver
from tests.integration.yard.sweeping import Field


@pytest.fixture
def field(driver: Driver) -> Field:
    return Field(driver)


def test_each_configuration_and_repetition_is_a_run(field: Field) -> None:
    done = field.sweep(space={"lr": [0.1, 0.01], "width": [64, 128]}, reps=2, name="digits")
    assert (done["id"], len(done["runs"]), done["created"], done["reused"], done["retried"]) == (1, 8, 8, 0, 0)
    first, *_, last = (field.yard.get_run(run) for run in sorted(done["runs"]))
    assert (first["params"], first["index"], first["name"]) == ({"lr": 0.1, "width": 64}, 1, "digits.1")
    assert (first["sweep"], last["sweep"]) == ({"id": 1, "trial": 1, "rep": 1}, {"id": 1, "trial": 4, "rep": 2})
    runs = [run for trial in field.trials() for run in trial["runs"]]
    assert len({run["seed"] for run in runs}) == 8
    assert sorted(run["index"] for run in runs) == list(range(1, 9))
    assert field.show()["trials"] == {"planned": 4, "made": 4, "ended": 0}


def test_the_first_name_is_the_fastest(field: Field) -> None:
    field.sweep(space={"lr": [1, 2], "width": [3, 4]})
    assert [trial["params"] for trial in field.trials()] == [
        {"lr": 1, "width": 3}, {"lr": 2, "width": 3}, {"lr": 1, "width": 4}, {"lr": 2, "width": 4},
    ]  # fmt: skip


def test_handing_in_again_adds_only_what_is_missing(field: Field) -> None:
    field.sweep(reps=2, minimize="loss")
    good, bad, *_ = field.claims()
    field.finish(good, 0.5)
    field.end(bad, exit_code=1)
    again = field.sweep(reps=3, minimize="loss")
    assert (again["id"], again["created"], again["reused"], again["retried"]) == (1, 2, 3, 1)
    assert field.driver.state(bad.key.run) == ("queued", None)
    assert [trial["n"] for trial in field.trials()] == [1, 0]


def test_what_there_is_and_what_it_was_made_of_is_told(field: Field) -> None:
    """Nothing is run again for code that has changed; but nobody is to take old results for new ones."""
    old, new = ({"path": f"/data/{name}", "to": "set"} for name in ("old", "new"))
    assert field.sweep(data=[old])["differs"] == []
    assert field.sweep(data=[old], reps=2)["differs"] == []
    for _ in range(2):
        again = field.sweep(data=[new], reps=2, python_env="none")
        assert (again["id"], again["created"], again["reused"]) == (1, 0, 4)
        assert again["differs"] == ["data", "python_env"], "the runs are still the old ones"
    planned = field.plan(data=[new], reps=2)
    assert (planned["sweep"], planned["differs"]) == (1, ["data"])
    assert field.sweep(data=[new], fresh=True)["differs"] == []


def test_what_is_run_again_is_run_with_what_there_is_now(field: Field) -> None:
    field.sweep(env={"A": "1"}, name="mine")
    good, bad = field.claims()
    field.end(good)
    field.end(bad, exit_code=1)
    assert field.plan(env={"A": "2"}, name="mine")["differs"] == ["env"]
    assert field.sweep(env={"A": "2"}, name="mine")["differs"] == ["env"], "of the one that has succeeded"
    [again] = field.claims()
    field.end(again)
    assert field.sweep(env={"A": "2"}, name="mine", command=["train", "{lr}", "fast"])["differs"] == ["command", "env"]


def test_a_plan_says_what_is_missing(field: Field) -> None:
    document: dict[str, Any] = {"reps": 2, "minimize": "loss"}
    planned = field.plan(**document)
    assert (planned["sweep"], planned["created"], planned["reused"], planned["retried"]) == (None, 4, 0, 0)
    field.sweep(**document)
    good, bad, *_ = field.claims()
    field.finish(good, 0.5)
    field.end(bad, exit_code=1)
    before = field.show()
    assert field.plan(**document, fresh=True)["created"] == 4
    other = field.plan(**document, space={"lr": [5]})
    assert (other["sweep"], other["created"]) == (None, 2), "another space is another sweep"
    planned = field.plan(**{**document, "reps": 3})
    assert (planned["runs"], planned["sweep"], field.show()) == (6, 1, before)
    done = field.sweep(**{**document, "reps": 3})
    assert (done["created"], done["reused"], done["retried"]) == (2, 3, 1)
    assert all(planned[name] == done[name] for name in ("created", "reused", "retried"))


def test_a_plan_of_a_search_that_goes_on(field: Field) -> None:
    field.sweep(**TPE, name="mine")
    field.run_all(_loss)
    planned = field.plan(**{**TPE, "trials": 20, "reps": 2}, name="mine")
    done = field.sweep(**{**TPE, "trials": 20, "reps": 2}, name="mine")
    assert (planned["created"], planned["reused"]) == (done["created"], done["reused"]) == (24, 16)
    with pytest.raises(errors.Conflict, match="has another seed"):
        field.plan(**{**TPE, "seed": 4}, name="mine")


def test_a_known_sweep_may_be_begun_anew(field: Field) -> None:
    assert field.sweep()["id"] == 1
    assert field.sweep(fresh=True)["id"] == 2
    again = field.sweep()
    assert (again["id"], again["created"]) == (2, 0)


def test_another_space_or_owner_is_another_sweep(field: Field) -> None:
    field.sweep()
    assert field.sweep(space={"lr": [5]})["id"] == 2
    whole = {"command": ["train", "{lr}"], "space": {"lr": [0.1, 0.01]}}
    assert field.yard.sweeps.submit(field.driver.bob, SweepSpec.parse(whole)).result()["id"] == 3


def test_a_named_sweep_grows_with_its_space_and_keeps_its_seeds(field: Field) -> None:
    field.sweep(name="mine")
    before = {run["seed"] for trial in field.trials() for run in trial["runs"]}
    again = field.sweep(name="mine", space={"lr": [7, 0.1, 0.01]})
    assert (again["id"], again["created"], again["reused"]) == (1, 1, 2)
    assert before < {run["seed"] for trial in field.trials() for run in trial["runs"]}


def test_what_failed_is_run_with_the_code_of_now(field: Field) -> None:
    field.sweep(name="mine", env={"A": "1"})
    for claim in field.claims():
        field.end(claim, exit_code=1)
    again = field.sweep(name="mine", env={"A": "2"})
    assert (again["created"], again["retried"]) == (0, 2)
    assert {run["id"] for trial in field.trials() for run in trial["runs"]}.isdisjoint({1, 2})
    assert [claim.spec["env"] for claim in field.claims()] == [{"A": "2"}] * 2


def test_a_list_of_configurations(field: Field) -> None:
    field.sweep(space=None, configurations=[{"lr": 1, "model": {"depth": 2}}, {"lr": 2}])
    assert [claim.argv for claim in field.claims()] == [["train", "1"], ["train", "2"]]


def test_only_so_many_run_at_a_time(field: Field) -> None:
    done = field.sweep(space={"lr": list(range(10))}, parallel=3)
    assert (done["created"], len(done["runs"])) == (10, 3)
    seen = 0
    while claims := field.claims():
        assert len(claims) <= 3
        seen += len(claims)
        for claim in claims:
            field.end(claim)
    assert seen == 10
    assert field.show()["state"] == "succeeded"


def test_trials_have_the_mean_of_their_repetitions(field: Field) -> None:
    field.sweep(space={"lr": [1, 2]}, reps=3, minimize="loss")
    for claim in field.claims():
        field.finish(claim, claim.spec["params"]["lr"] + claim.key.run / 10)
    one, two = field.trials()
    assert one["n"] == 3
    assert one["low"] < one["value"] < one["high"]
    assert one["value"] == pytest.approx(1 + (1 + 3 + 5) / 30)
    shown = field.show()
    assert (shown["state"], shown["best"]["number"]) == ("succeeded", 1)
    assert two["state"] == "succeeded"


def test_trials_are_measured_by_any_metric(field: Field) -> None:
    field.sweep(space={"lr": [1, 2]}, reps=2, minimize="loss")
    for claim in field.claims():
        for step, value in enumerate((0.25, 0.75, 0.5), 1):
            field.report(claim, step, value + claim.key.run, "acc")
        field.finish(claim, 9.0)
    for at, value in ((At.LAST, 2.5), (At.BEST, 2.75)):
        one, _ = field.yard.sweeps.trials(1, 0, 10, Objective(metric="acc", goal=Goal.MAXIMIZE, at=at))
        assert (one["value"], one["n"], one["runs"][0]["step"]) == (value, 2, 3)
    assert [trial["value"] for trial in field.trials()] == [9.0, 9.0]
    none, _ = field.yard.sweeps.trials(1, 0, 10, Objective(metric="other"))
    assert (none["value"], none["n"], none["state"]) == (None, 0, "succeeded")


def test_a_metric_that_never_came_is_told(field: Field) -> None:
    field.sweep(minimize="val/loss")
    quiet, nan = field.claims()
    field.finish(quiet, 0.5)
    assert "val/loss of run 1 is not reported" in field.show()["detail"]
    field.say(nan, {"t": 1.0, "step": 1, "m": {"val/loss": math.nan}})
    field.end(nan)
    shown = field.show()
    assert "val/loss of run 2 is not a number" in shown["detail"]
    assert (shown["best"], shown["state"]) == (None, "succeeded")
    assert [decision["body"]["state"] for decision in field.yard.sweeps.decisions(1, 0, 10)] == ["failed", "failed"]


def test_the_best_value_on_the_way_may_count(field: Field) -> None:
    field.sweep(objective={"metric": "acc", "goal": "maximize", "at": "best"}, space={"lr": [1]})
    [claim] = field.claims()
    for step, value in enumerate([0.1, 0.9, 0.4], 1):
        field.report(claim, step, value, "acc")
    field.end(claim)
    assert field.trials()[0]["value"] == 0.9


def test_a_summary_counts_where_nothing_else_was_reported(field: Field) -> None:
    field.sweep(maximize="acc", space={"lr": [1]})
    [claim] = field.claims()
    field.say(claim, {"t": 1.0, "summary": {"acc": 0.75}})
    field.end(claim)
    assert field.trials()[0]["value"] == 0.75


def test_a_named_sweep_may_be_after_another_metric(field: Field) -> None:
    """One that was misspelt, forgotten at first, or turned out to say nothing: its runs need not run again."""
    field.sweep(name="mine", minimize="los")
    for claim in field.claims():
        field.say(claim, {"t": 1.0, "step": 1, "m": {"acc": claim.spec["params"]["lr"]}})
        field.finish(claim, claim.spec["params"]["lr"])
    assert "los of run 2 is not reported" in field.show()["detail"]
    for document, number, value in (({"minimize": "loss"}, 2, 0.01), ({"maximize": "acc"}, 1, 0.1)):
        again = field.sweep(name="mine", **document)
        best = field.show()["best"]
        assert (again["reused"], best["number"], best["value"], field.show()["detail"]) == (2, number, value, None)
    field.sweep(name="mine")
    assert [trial["value"] for trial in field.trials()] == [None, None]


def test_decisions_hold_for_the_rule_that_made_them(field: Field) -> None:
    document: dict[str, Any] = {"name": "mine", "minimize": "loss", "stop": {"rule": "asha", "grace": 5}}
    field.sweep(**document)
    for change, changed in (({"minimize": "error"}, "objective"), ({"stop": "median"}, "stop"), ({"stop": {}}, "stop")):
        with pytest.raises(errors.Conflict, match=f"has another {changed}"):
            field.sweep(**{**document, **change})
    assert field.sweep(**{**document, "stop": {"rule": "asha", "grace": 9}})["reused"] == 2, "the same rule"


def test_a_summary_is_no_step_of_its_own(field: Field) -> None:
    """Who sums up under the name of a curve has ended where the curve ends: the others are through there, too."""
    field.sweep(space={"lr": [1, 2, 3]}, minimize="loss", stop="asha")
    first, second, third = field.claims()
    field.say(first, *({"t": 1.0, "step": step, "m": {"loss": 0.5}} for step in (1, 2, 3)))
    field.say(first, {"t": 1.0, "summary": {"loss": 0.5}})
    field.end(first)
    assert field.trials()[0]["runs"][0]["step"] == 3
    for claim in (second, third):
        field.say(claim, *({"t": 1.0, "step": step, "m": {"loss": 9.0}} for step in (1, 2, 3)))
        field.look()
    assert field.driver.sync().stops == []


def test_losers_are_stopped_early_and_count_as_results(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3, 4]}, minimize="loss", stop={"rule": "asha", "first": 3})
    claims = field.claims()
    for claim in claims:
        field.report(claim, 3, float(claim.spec["params"]["lr"]))
    third, fourth = claims[2:]
    assert [(stop.key, stop.reason) for stop in field.driver.sync().stops] == [
        (third.key, "early_stop"), (fourth.key, "early_stop"),
    ]  # fmt: skip
    for claim in (third, fourth):
        field.end(claim, "stopped", stop_reason="early_stop", exit_code=None, signal=15)
    assert field.driver.state(third.key.run) == ("cancelled", "early_stop")
    detail = field.yard.get_run(third.key.run)["detail"]
    assert detail.startswith("stopped by sweep S1 at step 3: loss 3, worse than the best third (1)")
    for claim in claims[:2]:
        field.finish(claim, 0.5, 9)
    shown = field.show()
    assert (shown["state"], shown["runs"]["early_stop"], shown["runs"]["failed"]) == ("succeeded", 2, 0)
    assert shown["steps"] == {"done": 24.0, "full": 36.0}
    again = field.sweep(space={"lr": [1, 2, 3, 4]}, minimize="loss", stop={"rule": "asha", "first": 3})
    assert (again["created"], again["retried"], again["reused"]) == (0, 0, 4)
    assert field.yard.sweeps.replay(1) == {"decisions": 6, "different": []}


def test_a_run_that_has_ended_is_not_stopped(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, minimize="loss", stop="asha")
    one, two, three = field.claims()
    for claim in (one, two):
        field.report(claim, 1, 1.0)
    field.say(three, {"t": 1.0, "step": 1, "m": {"loss": 9.0}})
    field.driver.sync()  # nobody has read that line yet
    field.end(three)
    assert field.driver.state(three.key.run) == ("succeeded", None)
    assert field.driver.sync().stops == []
    assert "stop" not in field.kinds()


def test_the_median_rule(field: Field) -> None:
    rule = {"rule": "median", "first": 1, "trials": 3}
    field.sweep(space={"lr": [1, 2, 3, 4, 5]}, maximize="loss", stop=rule)
    claims = field.claims()
    for claim in claims:
        field.report(claim, 1, -float(claim.spec["params"]["lr"]))
    assert [stop.key.run for stop in field.driver.sync().stops] == [claims[3].key.run, claims[4].key.run]


def test_cancel_and_retry(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, parallel=2)
    first, second = field.claims()
    field.end(first, exit_code=3)
    with pytest.raises(errors.Forbidden, match="belongs to alice"):
        field.yard.sweeps.cancel(field.driver.bob, 1)
    field.yard.sweeps.cancel(field.driver.alice, 1)
    field.end(second, "stopped", stop_reason="user", exit_code=None, signal=15)
    field.look()
    assert field.show()["state"] == "cancelled"
    assert field.yard.sweeps.retry(field.driver.admin, 1, ["failed"]).result() == {"id": 1, "retried": 1}
    assert field.yard.sweeps.retry(field.driver.alice, 1, ["failed", "cancelled"]).result()["retried"] in (1, 2)
    assert field.show()["state"] in ("queued", "running")


def test_where_there_is_nothing_to_retry_a_cancelled_sweep_stays_so(field: Field) -> None:
    field.sweep(space={"lr": [1, 2, 3]}, parallel=1)
    [claim] = field.claims()
    field.yard.sweeps.cancel(field.driver.alice, 1)
    field.end(claim, "stopped", stop_reason="user", exit_code=None, signal=15)
    assert field.yard.sweeps.retry(field.driver.alice, 1, ["failed"]).result()["retried"] == 0
    field.look()
    assert (field.show()["state"], field.claims()) == ("cancelled", [])


def test_a_sweep_that_does_not_exist(field: Field) -> None:
    with pytest.raises(errors.NotFound, match="there is no sweep S7"):
        field.yard.sweeps.get(7)


def test_runs_of_a_sweep_are_listed(field: Field) -> None:
    from runyard.yard.views import RunFilter

    field.driver.submit()
    field.sweep()
    assert [run["id"] for run in field.yard.list_runs(RunFilter(sweep=1))] == [3, 2]


def _loss(params: dict[str, Any]) -> float:
    return (math.log10(params["lr"]) + 3) ** 2


TPE = {
    "method": "tpe", "trials": 16, "parallel": 4, "minimize": "loss", "seed": 3,
    "space": {"lr": "log:1e-5..1e-1", "opt": ["a", "b"], "m": {"from": 0.1, "to": 0.9, "when": {"opt": "b"}}},
}  # fmt: skip


def test_a_method_that_learns_makes_trials_while_there_is_room(field: Field) -> None:
    done = field.sweep(**TPE)
    assert (done["runs"], done["created"]) == ([], 16)
    assert field.run_all(_loss) == 16
    shown = field.show()
    assert (shown["state"], shown["trials"]) == ("succeeded", {"planned": 16, "made": 16, "ended": 16})
    assert field.kinds().count("ask") == field.kinds().count("tell") == 16
    assert field.yard.sweeps.replay(1) == {"decisions": 16, "different": []}
    more = field.sweep(**{**TPE, "trials": 18})
    assert (more["id"], more["created"]) == (1, 2)
    assert field.run_all(_loss) == 2


@pytest.mark.parametrize("method", ["tpe", "cmaes"])
def test_the_same_seed_gives_the_same_search(field: Field, method: str) -> None:
    for fresh in range(2):
        field.sweep(**{**TPE, "method": method}, fresh=bool(fresh))
        field.run_all(_loss)
        assert field.yard.sweeps.replay(fresh + 1)["different"] == []
    assert [trial["params"] for trial in field.trials(1)] == [trial["params"] for trial in field.trials(2)]


def test_a_search_tells_equal_choices_apart(field: Field) -> None:
    field.sweep(**{**TPE, "trials": 40, "space": {"lr": [1, True, 1.0]}})
    field.run_all(lambda params: 0.0 if params["lr"] is True else 1.0)
    chosen = [json.dumps(trial["params"]["lr"]) for trial in field.trials()]
    assert chosen[20:].count("true") > 10, chosen


def test_a_method_that_is_not_installed_is_refused(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(search.NEEDED, Method.TPE, {"no_such_module": "runyard[sweep]"})
    with pytest.raises(errors.InvalidInput, match="no_such_module is not installed") as refused:
        field.sweep(**TPE)
    assert "pip install 'runyard[sweep]'" in refused.value.fix


def test_the_search_by_gaussian_processes(field: Field) -> None:
    """With what it needs it searches; without, it says what that is."""
    missing = [module for module in search.NEEDED[Method.GP] if importlib.util.find_spec(module) is None]
    if missing:
        with pytest.raises(errors.InvalidInput, match=f"because {missing[0]} is not installed") as refused:
            field.sweep(**{**TPE, "method": "gp"})
        assert all(f"'{module}'" in refused.value.fix for module in missing)
        return
    field.sweep(**{**TPE, "method": "gp"})
    assert field.run_all(_loss) == 16
    assert field.yard.sweeps.replay(1)["different"] == []


def test_runs_have_the_priority_of_their_sweep(field: Field) -> None:
    field.sweep()
    done = field.sweep(priority=7, name="urgent")
    assert {field.yard.get_run(run)["priority"] for run in done["runs"]} == {7}
    first = field.claims(most=2)
    assert sorted(claim.key.run for claim in first) == sorted(done["runs"]), "though others came before"


def test_a_search_that_changes_is_another_one(field: Field) -> None:
    field.sweep(**TPE, name="mine")
    with pytest.raises(errors.Conflict, match="has another space"):
        field.sweep(**{**TPE, "space": {"lr": "log:1e-5..1"}}, name="mine")


def test_the_search_hears_of_failures_and_of_what_was_stopped(field: Field) -> None:
    field.sweep(**{**TPE, "trials": 12}, stop="asha")
    field.look()
    number = 0
    while claims := field.claims():
        for claim in claims:
            number += 1
            _live(field, claim, number)
    told = [decision["body"]["state"] for decision in field.yard.sweeps.decisions(1, 0, 1000)
            if decision["kind"] == "tell"]  # fmt: skip
    assert len(told) == 12
    assert set(told) == {"complete", "stopped", "failed"}
    assert field.yard.sweeps.replay(1)["different"] == []
    again = field.sweep(**{**TPE, "trials": 12}, stop="asha")
    assert (again["created"], again["reused"], again["retried"]) == (0, 11, 1), "what was stopped is there already"


def _live(field: Field, claim: Claim, number: int) -> None:
    if number == 2:
        field.end(claim, exit_code=1)
        return
    for step in (1, 3, 9):
        field.report(claim, step, _loss(claim.spec["params"]) / step)
        if any(stop.key == claim.key for stop in field.driver.sync(free=NOTHING).stops):
            field.end(claim, "stopped", stop_reason="early_stop", exit_code=None, signal=15)
            return
    field.end(claim)


def test_a_log_that_was_changed_is_noticed(field: Field) -> None:
    from sqlalchemy import text

    field.sweep(space={"lr": [1, 2, 3]}, minimize="loss", stop="asha")
    for claim in field.claims():
        field.report(claim, 1, float(claim.spec["params"]["lr"]))
    assert field.yard.sweeps.replay(1)["different"] == []
    seen = field.yard.sweeps.decisions(1, 2, 1)[0]["body"]
    forged = json.dumps({**seen, "value": 0.5})
    statement = text("UPDATE decisions SET body = :body WHERE sweep_id = 1 AND number = 3")
    field.yard.store.write(lambda connection: connection.execute(statement, {"body": forged})).result()
    assert [item["kind"] for item in field.yard.sweeps.replay(1)["different"]] == ["rung"]
