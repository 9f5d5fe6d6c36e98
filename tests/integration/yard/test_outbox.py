"""Replies that are due: held by whoever sends them, and sent again to whoever asks again."""

from __future__ import annotations

from runyard.model.intake import Intake
from runyard.model.recipe import Recipe
from runyard.model.request import Asked, Sender
from tests.integration.yard.conftest import Driver

INTAKE = Intake(name="tasks", queue="tasks", recipe="train", caller="web")


def ask(driver: Driver) -> int:
    asked = Asked(sender=Sender(identity="c1", correlation_id="c1", reply_to="answers"), digest="one")
    (run,) = driver.yard.requests.accept(INTAKE, asked, [{}], is_group=False).result().runs
    return run


def test_a_reply_that_is_asked_for_while_it_is_sent_is_sent_again(driver: Driver) -> None:
    driver.yard.recipes.put(driver.admin, "train", Recipe.parse({"command": ["true"]}), default=False).result()
    driver.yard.cancel(driver.admin, [ask(driver)]).result()
    [outcome] = driver.yard.outbox.take({"tasks": 1.0}, 10)
    assert driver.yard.outbox.take({"tasks": 1.0}, 10) == []
    ask(driver)
    driver.yard.outbox.sent(outcome.id)
    [again] = driver.yard.outbox.take({"tasks": 1.0}, 10)
    driver.yard.outbox.sent(again.id)
    driver.clock.now += 3600
    assert driver.yard.outbox.take({"tasks": 1.0}, 10) == []
