"""Agents that cannot reach their node: taken out at once, lost only after the deadline, welcome when it is back."""

from __future__ import annotations

from typing import Any

from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Report
from tests.integration.yard.conftest import NOTHING, Driver, running

AWAY = "hoff does not answer: connection timed out"


def returned(claim: Claim) -> Report:
    record = {"ending": "returned", "message": AWAY, "exit_code": None, "signal": None}
    return Report(key=claim.key, state=AttemptState.ENDED, record=record)


def agent(driver: Driver) -> dict[str, Any]:
    return driver.yard.sites.agents()[0]


def test_a_node_that_does_not_answer_is_unreachable_at_once_and_not_lost_before_the_deadline(driver: Driver) -> None:
    [run] = driver.submit(retry={"max": 3})
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    driver.sync(free=NOTHING, away=AWAY)
    assert (agent(driver)["state"], agent(driver)["trouble"]) == ("unreachable", AWAY)
    assert driver.yard.get_run(run)["detail"] == f"unreachable: {AWAY}"
    for _ in range(100):
        driver.clock.now += 860
        driver.sync(free=NOTHING, away=AWAY)
        driver.yard.tick()
        assert driver.state(run) == ("running", None)
    assert driver.kinds(run).count("unreachable") == 1
    driver.clock.now += 860
    driver.yard.tick()
    assert driver.state(run) == ("failed", "lost"), "its agent speaks, and its node has been silent for a day"


def test_a_node_that_is_back_takes_its_runs_with_it(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    driver.sync(free=NOTHING, away=AWAY)
    driver.sync(free=NOTHING)
    assert (agent(driver)["state"], agent(driver)["trouble"]) == ("alive", None)
    assert driver.yard.get_run(run)["detail"] is None
    assert driver.kinds(run)[-2:] == ["unreachable", "reachable"]


def test_what_was_never_handed_over_waits_for_another_node_and_has_not_failed(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(returned(claim), free=NOTHING, away=AWAY)
    assert driver.state(run) == ("queued", None)
    assert "returned" in driver.kinds(run)
    [again] = driver.sync().claims
    assert (again.key.run, again.key.attempt) == (run, 2)


def test_what_was_never_handed_over_and_is_not_wanted_any_more_is_cancelled(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.yard.cancel(driver.admin, [run]).result()
    driver.sync(returned(claim), free=NOTHING, away=AWAY)
    assert driver.state(run) == ("cancelled", "user")
