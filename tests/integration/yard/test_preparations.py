"""Requests that wait for files: kept, held by one at a time, and started or answered once."""

from __future__ import annotations

import hashlib

import pytest

from runyard import errors
from runyard.model.input_file import InputFile
from runyard.model.intake import Intake
from runyard.model.recipe import Recipe
from runyard.model.request import Asked, Sender
from tests.integration.yard.conftest import Driver

INTAKE = Intake(name="rodan", queue="hpc-jobs", recipe="train", caller="rodan")
BODY = {"lr": 0.1}


@pytest.fixture
def driver(driver: Driver) -> Driver:
    schema = {"type": "object", "properties": {"lr": {"type": "number", "maximum": 1}}}
    recipe = Recipe.parse({"command": ["train", "{lr}"], "schema": schema})
    driver.yard.recipes.put(driver.admin, "train", recipe, default=False).result()
    driver.hello()
    return driver


def ask(driver: Driver, identity: str = "c1", body: dict[str, float] = BODY) -> int:
    asked = Asked(sender=Sender(identity=identity, correlation_id=identity, reply_to="hpc-results"), digest=str(body))
    return driver.yard.preparations.accept(INTAKE, asked, [body], is_group=False).result().id


def states(driver: Driver) -> list[str]:
    return [row["state"] for row in driver.yard.outbox.every()]


def stored(driver: Driver, data: bytes) -> InputFile:
    digest = driver.yard.blobs.add([data])
    assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    return InputFile(digest=digest, to="image.png")


def test_nothing_starts_and_nothing_is_answered_before_the_files_are_there(driver: Driver) -> None:
    ask(driver)
    assert (states(driver), driver.sync().claims) == (["waiting"], [])
    assert driver.yard.outbox.take({"rodan": 1.0}, 10) == []
    [preparation] = driver.yard.preparations.take("rodan", 10)
    assert preparation.bodies == [BODY]
    driver.yard.preparations.start(INTAKE, preparation, [stored(driver, b"page")])
    [claim] = driver.sync().claims
    assert claim.argv == ["train", "0.1"]
    assert [one["to"] for one in claim.spec["inputs"]] == ["image.png"]
    assert states(driver) == ["running"]


def test_what_the_recipe_refuses_is_refused_at_once(driver: Driver) -> None:
    with pytest.raises(errors.InvalidInput, match=r"params.lr: 5 is more than the maximum 1"):
        ask(driver, body={"lr": 5})


def test_a_request_is_held_by_one_and_left_to_the_next_when_that_dies(driver: Driver) -> None:
    ask(driver)
    assert len(driver.yard.preparations.take("rodan", 10)) == 1
    assert driver.yard.preparations.take("rodan", 10) == []
    driver.clock.now += 20
    driver.yard.preparations.hold(1)
    driver.clock.now += 20
    assert driver.yard.preparations.take("rodan", 10) == []
    driver.clock.now += 11
    assert len(driver.yard.preparations.take("rodan", 10)) == 1


def test_the_same_message_again_changes_nothing(driver: Driver) -> None:
    assert ask(driver) == ask(driver)
    [preparation] = driver.yard.preparations.take("rodan", 10)
    driver.yard.preparations.start(INTAKE, preparation, [])
    assert ask(driver) == preparation.id
    assert len(driver.sync().claims) == 1


def test_what_was_started_cannot_be_started_failed_or_postponed(driver: Driver) -> None:
    ask(driver)
    [preparation] = driver.yard.preparations.take("rodan", 10)
    driver.yard.preparations.start(INTAKE, preparation, [])
    with pytest.raises(errors.Conflict, match="was started by another process"):
        driver.yard.preparations.start(INTAKE, preparation, [])
    driver.yard.preparations.postpone(preparation, "no answer")
    driver.yard.preparations.fail(preparation.id, "no answer")
    [row] = driver.yard.outbox.every()
    assert (row["state"], row["error"], row["trouble"]) == ("running", None, None)


def test_a_failure_is_a_reply(driver: Driver) -> None:
    request = ask(driver)
    driver.yard.preparations.fail(request, "the input 'Image' cannot be had")
    [outcome] = driver.yard.outbox.take({"rodan": 1.0}, 10)
    assert (outcome.error, list(outcome.runs)) == ("the input 'Image' cannot be had", [])
    assert driver.yard.preparations.take("rodan", 10) == []


def test_what_failed_may_be_asked_for_again(driver: Driver) -> None:
    driver.yard.preparations.fail(ask(driver), "away")
    ask(driver)
    assert len(driver.yard.preparations.take("rodan", 10)) == 1


def test_tries_in_vain_come_later_and_later(driver: Driver) -> None:
    ask(driver)
    pauses = []
    for _ in range(7):
        [preparation] = driver.yard.preparations.take("rodan", 1)
        began = driver.clock.now
        waited = driver.yard.preparations.postpone(preparation, "no answer")
        assert waited == began - 1_000_000.0
        while not driver.yard.preparations.take("rodan", 1):
            driver.clock.now += 1
        pauses.append(driver.clock.now - began)
        driver.clock.now += 31  # the hold that looking made
    assert pauses == [2, 4, 8, 16, 32, 60, 60]


def test_a_file_that_the_yard_does_not_have_starts_nothing(driver: Driver) -> None:
    ask(driver)
    [preparation] = driver.yard.preparations.take("rodan", 1)
    with pytest.raises(errors.InvalidInput, match="the yard has no file sha256:"):
        driver.yard.preparations.start(INTAKE, preparation, [InputFile(digest=f"sha256:{'0' * 64}", to="x")])
    assert driver.sync().claims == []
