"""Requests of other programs: one commit, one owner, and never twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from runyard import errors
from runyard.model.recipe import Recipe
from runyard.model.roles import Caller, Role
from tests.integration.yard.conftest import Driver

WEB = Caller(name="web", role=Role.CALLER, recipes=("train",))


def add(driver: Driver, name: str = "train", default: bool = False, **recipe: Any) -> None:
    parsed = Recipe.parse({"command": ["train", "{lr}"], **recipe})
    driver.yard.recipes.put(driver.admin, name, parsed, default=default).result()


def request(driver: Driver, *bodies: dict[str, Any], recipe: str | None = "train", key: str | None = None) -> list[int]:
    requested = driver.yard.recipes.request(WEB, recipe, bodies, idempotency_key=key).result()
    return [run.id for run in requested.runs]


def test_a_request_is_queued_and_claimed_like_any_run(driver: Driver) -> None:
    add(driver)
    driver.hello()
    ids = request(driver, {"lr": 1}, {"lr": 2})
    claims = driver.sync().claims
    assert [claim.key.run for claim in claims] == ids
    assert [claim.argv for claim in claims] == [["train", "1"], ["train", "2"]]


def test_all_runs_of_a_request_are_stored_or_none(driver: Driver) -> None:
    add(driver, schema={"properties": {"lr": {"maximum": 1}}})
    with pytest.raises(errors.InvalidInput, match=r"runs\[1\]: params.lr: 2 is more than the maximum 1"):
        request(driver, {"lr": 1}, {"lr": 2})
    driver.hello()
    add(driver, bounds={"cpus": 64}, resources_from={"cpus": "cpus"})
    with pytest.raises(errors.Unsatisfiable, match=r"runs\[1\]: no site can ever give 64 cpus"):
        request(driver, {"lr": 1}, {"lr": 1, "cpus": 64})
    assert sum(driver.yard.counts().values()) == 0


def test_only_sites_that_may_take_a_run_hear_of_it(driver: Driver) -> None:
    driver.yard.sites.ensure("pool", "local", explicit=True).result()
    add(driver)
    add(driver, "there", site="pool")
    heard, told = list[str](), list[str]()
    for site in ("local", "pool"):
        driver.yard.hints.listen(f"site:{site}", lambda site=site: heard.append(site))  # type: ignore[misc]
    driver.yard.hints.relay(told.append)
    request(driver, {"lr": 1}, key="k")
    driver.submit()
    assert heard == ["local", "local"]
    driver.yard.recipes.request(driver.alice, "there", [{"lr": 1}]).result()
    driver.submit(site="pool")
    assert heard == ["local", "local", "pool", "pool"]
    request(driver, {"lr": 1}, key="k")  # nothing new
    assert (len(heard), told) == (4, ["site:"] * 4)  # other servers see for themselves


def test_the_default_recipe(driver: Driver) -> None:
    with pytest.raises(errors.NotFound, match="no default recipe"):
        driver.yard.recipes.request(driver.alice, None, [{}])
    add(driver, default=True)
    add(driver, "other")
    requested = driver.yard.recipes.request(driver.alice, None, [{"lr": 1}]).result()
    assert requested.recipe == "train"


def test_deliveries_of_one_request_at_the_same_time_start_it_once(driver: Driver) -> None:
    """As a broker does that delivers again before it heard the first answer."""
    add(driver)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: request(driver, {"lr": 1}, {"lr": 2}, key="c-1"), range(24)))
    assert len({tuple(ids) for ids in found}) == 1
    assert sum(driver.yard.counts().values()) == 2


def test_keys_belong_to_their_caller(driver: Driver) -> None:
    add(driver)
    mine = request(driver, {"lr": 1}, key="k")
    theirs = driver.yard.recipes.request(driver.alice, "train", [{"lr": 1}], idempotency_key="k").result()
    assert theirs.runs[0].id not in mine


def test_a_repeated_request_is_answered_after_its_recipe_changed_and_its_run_ended(driver: Driver) -> None:
    add(driver)
    (first,) = request(driver, {"lr": 1}, key="k")
    driver.yard.cancel(driver.admin, [first]).result()
    add(driver, schema={"required": ["other"]})
    assert request(driver, {"lr": 1}, key="k") == [first]


def test_what_is_going_on(driver: Driver) -> None:
    add(driver)
    driver.hello()
    first, second, third = request(driver, {"lr": 1}, {"lr": 2}, {"lr": 3})
    (waiting,) = driver.submit(after=[first])
    assert driver.take(cpus=1) == [first]
    load = driver.yard.workload(10)
    assert load.agents == ["a1@node1"]
    assert {worker: [task["id"] for task in tasks] for worker, tasks in load.active.items()} == {"a1@node1": [first]}
    assert [task["id"] for task in load.queued] == [second, third]
    assert [task["id"] for task in load.blocked] == [waiting]
    assert [task["id"] for task in driver.yard.workload(1).queued] == [second]
    driver.clock.now += 3600
    assert driver.yard.workload(10).agents == []


def test_a_removed_recipe_leaves_its_runs(driver: Driver) -> None:
    add(driver)
    (run,) = request(driver, {"lr": 1})
    driver.yard.recipes.remove("train").result()
    assert driver.yard.get_run(run)["recipe"] == "train"
    assert driver.yard.recipes.run(WEB, "train", run)["state"] == "queued"
    with pytest.raises(errors.NotFound):
        request(driver, {"lr": 1})


def test_requests_that_come_together_are_each_their_own(driver: Driver) -> None:
    """They share a commit, and nothing else."""
    add(driver, bounds={"cpus": 64}, resources_from={"cpus": "cpus"})
    driver.hello()
    go_on = Event()
    before = driver.yard.store.write(lambda _: go_on.wait(60))
    asked = [{"lr": 1}, {"lr": 2, "cpus": 64}, {"lr": 3}]
    futures = [driver.yard.recipes.request(caller, "train", [body]) for body in asked for caller in (WEB, driver.alice)]
    keyed = [driver.yard.recipes.request(WEB, "train", [{"lr": 4}], idempotency_key="once") for _ in range(2)]
    go_on.set()
    assert before.result(60)
    for future in futures[2:4]:
        assert isinstance(future.exception(60), errors.Unsatisfiable)
    ids = [future.result(60).runs[0].id for future in (*futures[:2], *futures[4:], *keyed)]
    assert ids == [1, 2, 3, 4, 5, 5]
    shown = [driver.yard.get_run(number) for number in ids]
    assert [(run["owner"], run["params"]["lr"]) for run in shown[:4]] == [
        ("web", 1), ("alice", 1), ("web", 3), ("alice", 3),
    ]  # fmt: skip


def test_a_changed_recipe_is_the_one_that_is_called(driver: Driver) -> None:
    """Although it is remembered from the last request."""
    add(driver, default=True)
    for caller in (driver.alice, driver.alice):
        driver.yard.recipes.request(caller, None, [{"lr": 1}]).result()
    add(driver, command=["learn", "{lr}"])
    add(driver, "other", default=True, command=["other"])
    assert driver.yard.get_run(request(driver, {"lr": 2})[0])["command"] == ["learn", "{lr}"]
    assert driver.yard.recipes.request(driver.alice, None, [{"lr": 2}]).result().recipe == "other"
    driver.yard.recipes.remove("train").result()
    with pytest.raises(errors.NotFound, match="there is no recipe 'train'"):
        request(driver, {"lr": 2})
