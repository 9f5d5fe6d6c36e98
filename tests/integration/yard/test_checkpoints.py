"""What the yard knows of checkpoints: which it keeps, where an attempt finds them again, and when they go."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runyard import errors
from runyard.model.states import AttemptState
from runyard.model.wire import CHECKPOINTS, Claim, Hello, OutputWish, Report, Resume, SyncRequest, SyncResponse
from runyard.yard.checkpoints.checkpoints import PREFERRED_S
from tests.integration.yard.conftest import NOTHING, Driver, ended, gone, running

DAY = 86400.0


def tree(letter: str) -> str:
    return f"sha256:{letter * 64}"


def saved(letter: str = "a", **more: Any) -> dict[str, Any]:
    return {"tree": tree(letter), "size": 100, "files": 2, **more}


def saving(claim: Claim, letter: str, wish: int | None = None) -> Report:
    return Report(key=claim.key, state=AttemptState.RUNNING, checkpoint=saved(letter), saved=wish)


def with_checkpoint(report: Report, told: dict[str, Any] | None) -> Report:
    return dataclasses.replace(report, checkpoint=told)


class Other:
    """Another agent of the same site."""

    def __init__(self, driver: Driver, name: str = "a2") -> None:
        self._driver, self._name = driver, name
        hello = Hello(site="local", agent=name, node="node2", boot_id="boot", version="1", total=driver.total)
        self._incarnation, _ = driver.yard.hello(driver.admin, hello).result()

    def sync(self, *reports: Report) -> SyncResponse:
        """Takes work unless it has something to say."""
        request = SyncRequest(
            site="local", agent=self._name, incarnation=self._incarnation,
            free=NOTHING if reports else self._driver.total,
            reports=list(reports),
        )  # fmt: skip
        return self._driver.yard.sync(self._driver.admin, request).result()


def numbers(driver: Driver, run: int) -> list[tuple[int, str | None]]:
    return [(found["number"], found["tree"]) for found in driver.yard.checkpoints.of_run(run)]


def start(driver: Driver, **fields: Any) -> Claim:
    driver.submit(**fields)
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    return claim


def test_the_newest_are_kept_and_the_same_is_not_another(driver: Driver) -> None:
    claim = start(driver, checkpoint={"keep": 2})
    for letter in "aabbca":
        driver.sync(saving(claim, letter), free=NOTHING)
    assert numbers(driver, claim.key.run) == [(3, tree("c")), (4, tree("a"))]
    assert driver.yard.get_run(claim.key.run)["checkpoint"]["number"] == 4


def test_a_retry_where_it_was_finds_what_lies_there(driver: Driver) -> None:
    claim = start(driver)
    assert claim.resume is None
    driver.sync(with_checkpoint(ended(claim, exit_code=1), saved()), free=NOTHING)
    driver.yard.retry(driver.alice, [claim.key.run]).result()
    [again] = driver.sync().claims
    assert again.resume == Resume(tree=tree("a"), held=True)
    assert "checkpoint" not in driver.kinds(claim.key.run), "nothing is worth telling"
    [adopted] = driver.hello()
    assert adopted.resume == again.resume


def test_elsewhere_it_is_brought_along(driver: Driver) -> None:
    claim = start(driver)
    driver.sync(with_checkpoint(ended(claim, exit_code=1), saved()), free=NOTHING)
    driver.yard.retry(driver.alice, [claim.key.run]).result()
    other = Other(driver)
    assert not other.sync().claims, "it waits a moment for the place where its checkpoints are"
    driver.clock.now += PREFERRED_S + 1
    [again] = other.sync().claims
    assert again.resume == Resume(tree=tree("a"))
    event = driver.yard.events(claim.key.run, 0, 100)[-1]
    assert (event["kind"], event["message"]) == (
        "checkpoint", "resumes from checkpoint 1 of attempt 1 (100 B), which is fetched",
    )  # fmt: skip


def test_what_is_here_may_be_older_than_what_is_brought(driver: Driver) -> None:
    """The first attempt was here, the second elsewhere, and the third is here again."""
    claim = start(driver, retry={"max": 5, "on": ["lost"]})
    driver.sync(with_checkpoint(gone(claim), saved("a")), free=NOTHING)
    other = Other(driver)
    [second] = other.sync().claims
    assert second.resume == Resume(tree=tree("a")), "a node that lost it is not waited for"
    other.sync(running(second), saving(second, "b"))
    other.sync(gone(second))
    [third] = driver.sync().claims
    assert third.resume == Resume(tree=tree("b"))


def test_what_was_never_sent_is_told(driver: Driver) -> None:
    claim = start(driver, retry={"max": 1, "on": ["lost"]})
    driver.sync(gone(claim), free=NOTHING)
    [again] = Other(driver).sync().claims
    assert again.resume == Resume()
    message = driver.yard.events(claim.key.run, 0, 100)[-1]["message"]
    assert message == ("starts from the beginning: nothing that attempt 1 at node1 may have saved has come to the yard")


def test_what_stays_at_its_site_is_told(driver: Driver) -> None:
    claim = start(driver, retry={"max": 1, "on": ["error", "lost"]})
    driver.sync(with_checkpoint(gone(claim), {"tree": None, "size": 0, "files": 0}), free=NOTHING)
    [again] = Other(driver).sync().claims
    assert again.resume == Resume()
    assert "is there, and was not sent to the yard" in driver.yard.events(claim.key.run, 0, 100)[-1]["message"]


def test_resume_demands_something_and_afresh_discards_it(driver: Driver) -> None:
    claim = start(driver)
    run = claim.key.run
    driver.sync(ended(claim, exit_code=1), free=NOTHING)
    refused = driver.yard.retry(driver.alice, [run], "resume").result()[run]
    assert isinstance(refused, errors.Conflict)
    assert refused.message == f"run {run} has saved nothing that it could go on from"
    assert driver.state(run)[0] == "failed"
    driver.yard.retry(driver.alice, [run]).result()
    [second] = driver.sync().claims
    driver.sync(with_checkpoint(ended(second, exit_code=1), saved()), free=NOTHING)
    driver.yard.retry(driver.alice, [run], "resume").result()
    [third] = driver.sync().claims
    assert third.resume == Resume(tree=tree("a"), held=True)
    driver.sync(with_checkpoint(ended(third, exit_code=1), saved()), free=NOTHING)
    driver.yard.retry(driver.alice, [run], "afresh").result()
    [fourth] = driver.sync().claims
    assert fourth.resume == Resume(afresh=True)
    assert numbers(driver, run) == []
    driver.sync(with_checkpoint(ended(fourth, exit_code=1), saved("b")), free=NOTHING)
    driver.yard.retry(driver.alice, [run]).result()
    [fifth] = driver.sync().claims
    assert fifth.resume == Resume(tree=tree("b"), held=True), "what it saved since counts"


@pytest.mark.parametrize("ending", ["preempted", "node_lost"])
def test_a_run_that_saves_goes_on_after_an_interruption(driver: Driver, ending: str) -> None:
    claim = start(driver, checkpoint=True)
    driver.sync(with_checkpoint(ended(claim, ending), saved()), free=NOTHING)
    assert driver.state(claim.key.run) == ("queued", None)
    assert driver.kinds(claim.key.run)[-1] == "continued"


def test_a_run_that_saves_nothing_is_not_tried_for_ever(driver: Driver) -> None:
    [run] = driver.submit(checkpoint=True)
    for attempt in range(1, 5):
        driver.clock.now += PREFERRED_S + 1
        [claim] = driver.sync().claims
        assert claim.key.attempt == attempt
        driver.sync(ended(claim, "preempted"), free=NOTHING)
    assert driver.state(run) == ("failed", "preempted")


def test_what_it_saved_by_now_can_be_asked_for(driver: Driver) -> None:
    claim = start(driver)
    run = claim.key.run
    wish = driver.yard.checkpoints.ask(run).result()
    assert driver.sync(free=NOTHING).wanted == [OutputWish(key=claim.key, number=wish, what=CHECKPOINTS)]
    assert not driver.yard.checkpoints.are_here(run, wish)
    driver.sync(saving(claim, "a", wish), free=NOTHING)
    assert driver.yard.checkpoints.are_here(run, wish)
    assert driver.sync(free=NOTHING).wanted == []
    driver.sync(ended(claim), free=NOTHING)
    assert driver.yard.checkpoints.ask(run).result() == 0


def test_they_expire_at_a_site(driver: Driver) -> None:
    def expired(*runs: int) -> dict[int, int]:
        return driver.yard.expire_checkpoints(driver.admin, "local", "a1", driver.incarnation, runs).result()

    succeeded, failed, kept_there, alive = driver.submit(4)
    claims = {claim.key.run: claim for _ in range(2) for claim in _all_of(driver)}
    driver.sync(with_checkpoint(ended(claims[succeeded]), saved()), free=NOTHING)
    driver.sync(with_checkpoint(ended(claims[failed], exit_code=1), saved()), free=NOTHING)
    nothing_sent = {"tree": None, "size": 0, "files": 0}
    driver.sync(with_checkpoint(ended(claims[kept_there]), nothing_sent), free=NOTHING)
    everything = (succeeded, failed, kept_there, alive, 10_000)
    assert expired(*everything) == {succeeded: 1}
    driver.clock.now += 31 * DAY
    assert expired(*everything) == {succeeded: 1, failed: 1, kept_there: 1}
    assert numbers(driver, failed) == [(1, tree("a"))], "the yard still has it"
    assert numbers(driver, kept_there) == [], "and of this nothing is left"


def _all_of(driver: Driver) -> list[Claim]:
    return driver.sync(ahead=4).claims
