"""Runs whose agent fell silent: with a permit they are tried again when it must have run out, and not before."""

from __future__ import annotations

import re

import pytest

from runyard.model.resources import Capacity
from runyard.model.wire import Claim
from runyard.yard.agents.permits import MARGIN_S
from tests.integration.yard.conftest import NOTHING, Driver, ended, running

AWAY = "hoff does not answer: connection timed out"
PERMIT, GRACE = 300, 10
LIFETIME = PERMIT + GRACE + MARGIN_S


@pytest.fixture
def pool(driver: Driver) -> Driver:
    """Agents on machines of their own."""
    driver.yard.sites.edit("local", {"served_by": "agent"}).result()
    return driver


def started(pool: Driver, **fields: object) -> Claim:
    pool.submit(retry={"max": 1}, **fields)
    [claim] = pool.sync().claims
    pool.sync(running(claim), free=NOTHING)
    return claim


def test_it_is_tried_again_when_nothing_of_it_can_be_alive(pool: Driver) -> None:
    claim = started(pool)
    assert claim.permit == PERMIT
    pool.clock.now += LIFETIME - 1
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("running", None)
    detail = pool.yard.get_run(claim.key.run)["detail"]
    assert re.fullmatch(
        r"unreachable: agent a1 of site local is silent; will be tried again at \d\d:\d\d \S+ if it stays silent",
        detail,
    )
    pool.clock.now += 1
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("queued", None)
    [first] = pool.yard.get_run(claim.key.run)["attempts"]
    assert (first["state"], first["reason"]) == ("ended", "lost")
    assert first["detail"] == "agent a1 of site local has been silent for 5m25s; its permit has run out"


def test_a_node_that_its_agent_cannot_reach_is_silent_too(pool: Driver) -> None:
    claim = started(pool)
    for _ in range(5):
        pool.clock.now += LIFETIME / 5 - 1
        pool.sync(free=NOTHING, away=AWAY)
        pool.yard.tick()
        assert pool.state(claim.key.run) == ("running", None)
    assert "will be tried again at" in pool.yard.get_run(claim.key.run)["detail"]
    pool.clock.now += 5
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("queued", None)


def test_every_word_of_the_agent_counts(pool: Driver) -> None:
    claim = started(pool)
    for _ in range(5):
        pool.clock.now += LIFETIME - 1
        pool.yard.tick()
        pool.sync(free=NOTHING)
    assert pool.state(claim.key.run) == ("running", None)
    assert pool.yard.get_run(claim.key.run)["detail"] is None


def test_what_comes_back_too_late_is_superseded(pool: Driver) -> None:
    claim = started(pool)
    pool.clock.now += LIFETIME
    pool.yard.tick()
    answer = pool.sync(running(claim), free=NOTHING)
    assert [(order.key, order.reason) for order in answer.stops] == [(claim.key, "superseded")]
    [again] = pool.sync().claims
    assert (again.key.attempt, again.permit) == (2, None), "the rule allows no third one"
    answer = pool.sync(ended(claim, "lost"), free=NOTHING)
    assert answer.settled == answer.given_up == [claim.key], "nothing of the report was taken"
    assert pool.yard.get_run(claim.key.run)["attempt"] == 2
    pool.sync(running(again), free=NOTHING)
    pool.clock.now += LIFETIME
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("running", None), "without a permit nothing is proved"


def test_a_record_that_says_so_is_proof(pool: Driver) -> None:
    claim = started(pool)
    message = "its permit ran out: no word from its agent for 300 s"
    pool.sync(ended(claim, "lost", exit_code=None, message=message), free=NOTHING)
    assert pool.state(claim.key.run) == ("queued", None)
    assert pool.yard.get_run(claim.key.run)["attempts"][0]["detail"] == message


def test_a_run_that_is_not_wanted_any_more_is_cancelled(pool: Driver) -> None:
    claim = started(pool)
    pool.yard.cancel(pool.admin, [claim.key.run]).result()
    pool.clock.now += LIFETIME
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("cancelled", "user")


def test_an_agent_finds_the_permits_of_what_it_had(pool: Driver) -> None:
    claim = started(pool)
    assert [(owned.key, owned.permit) for owned in pool.hello()] == [(claim.key, PERMIT)]


def test_its_own_time_to_end_counts(pool: Driver) -> None:
    claim = started(pool, stop={"signal": "TERM", "grace": 100})
    pool.clock.now += LIFETIME + 89
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("running", None)
    pool.clock.now += 1
    pool.yard.tick()
    assert pool.state(claim.key.run) == ("queued", None)


def test_the_yards_own_machine_and_clusters_give_none(driver: Driver) -> None:
    driver.submit(retry={"max": 1})
    assert [claim.permit for claim in driver.sync().claims] == [None]
    driver.hello(total=Capacity(elastic=True))
    driver.submit(retry={"max": 1})
    assert [claim.permit for claim in driver.sync(room=5).claims] == [None]
