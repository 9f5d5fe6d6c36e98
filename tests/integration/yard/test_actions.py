"""Cancel, dependencies, idempotency, silence, tokens."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model.roles import Caller, NewToken, Role
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from tests.integration.yard.conftest import NOTHING, Driver, ended, gone, running


def test_cancel_of_a_waiting_run_is_immediate(driver: Driver) -> None:
    [run] = driver.submit()
    driver.yard.cancel(driver.alice, [run]).result()
    assert driver.state(run) == ("cancelled", "user")
    assert driver.sync().claims == []


def test_cancel_of_a_running_run_is_a_wish_until_it_is_proven(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    outcome = driver.yard.cancel(driver.alice, [run]).result()[run]
    assert isinstance(outcome, dict)
    assert outcome["state"] == "running"
    assert outcome["cancel_requested"] is True
    for _ in range(2):  # the order is repeated until the attempt is settled
        assert [stop.key for stop in driver.sync(free=NOTHING).stops] == [claim.key]
    driver.sync(ended(claim, "stopped", signal=15, stop_reason="user"), free=NOTHING)
    assert driver.state(run) == ("cancelled", "user")
    assert driver.sync(free=NOTHING).stops == []


def test_a_cancelled_run_is_not_tried_again(driver: Driver) -> None:
    [run] = driver.submit(retry={"max": 5})
    [claim] = driver.sync().claims
    driver.yard.cancel(driver.alice, [run]).result()
    driver.sync(gone(claim, "it never started"), free=NOTHING)
    assert driver.state(run) == ("cancelled", "user")


def test_a_run_that_finished_before_the_wish_arrived_succeeded(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.yard.cancel(driver.alice, [run]).result()
    driver.sync(ended(claim), free=NOTHING)
    assert driver.state(run) == ("succeeded", None)


def test_wishes_are_for_the_owner_and_the_administrator(driver: Driver) -> None:
    first, second = driver.submit(2)
    outcome = driver.yard.cancel(driver.bob, [first, 99]).result()
    assert isinstance(outcome[first], errors.Forbidden)
    assert isinstance(outcome[99], errors.NotFound)
    assert driver.state(first) == ("queued", None)
    driver.yard.cancel(driver.admin, [first]).result()
    viewer = Caller(name="alice", role=Role.VIEWER)
    assert isinstance(driver.yard.cancel(viewer, [second]).result()[second], errors.Forbidden)
    assert isinstance(driver.yard.cancel(driver.alice, [first]).result()[first], errors.Conflict)


def test_a_child_waits_for_its_parents(driver: Driver) -> None:
    first, second = driver.submit(2)
    [child] = driver.submit(after=[first, second])
    claims = driver.sync().claims
    assert [claim.key.run for claim in claims] == [first, second]
    assert driver.yard.get_run(child)["detail"] == f"waits for run {first} and 1 more"
    driver.sync(ended(claims[0]), free=NOTHING)
    assert driver.take() == []
    driver.sync(ended(claims[1]), free=NOTHING)
    assert driver.take() == [child]


def test_a_failed_parent_fails_all_that_come_after(driver: Driver) -> None:
    [parent] = driver.submit()
    [child] = driver.submit(after=[parent])
    [grandchild] = driver.submit(after=[child])
    [claim] = driver.sync().claims
    driver.sync(ended(claim, exit_code=1), free=NOTHING)
    assert driver.state(child) == driver.state(grandchild) == ("failed", "dependency")
    assert driver.yard.get_run(child)["detail"] == f"run {parent}, which it comes after, failed"
    [late] = driver.submit(after=[parent])
    assert driver.state(late) == ("failed", "dependency")
    refused = driver.yard.retry(driver.alice, [child]).result()[child]
    assert isinstance(refused, errors.Conflict)
    assert f"runyard retry {parent}" in refused.fix


def test_a_retried_parent_keeps_its_children_waiting(driver: Driver) -> None:
    [parent] = driver.submit(retry={"max": 1})
    [child] = driver.submit(after=[parent])
    driver.sync(gone(driver.sync().claims[0]), free=NOTHING)
    assert driver.state(child) == ("queued", None)
    driver.sync(ended(driver.sync().claims[0]), free=NOTHING)
    assert driver.take() == [child]


def test_an_unknown_parent_is_refused(driver: Driver) -> None:
    with pytest.raises(errors.InvalidInput, match="after: there is no run 7"):
        driver.submit(after=[7])


def test_the_same_key_gives_the_same_run(driver: Driver) -> None:
    spec = RunSpec.parse({"command": "true", "idempotency_key": "k"})
    [first] = driver.yard.submit(driver.alice, [spec]).result()
    again, twin = driver.yard.submit(
        driver.alice, [spec, spec.evolve(origin={"host": "elsewhere", "env": {}})]
    ).result()
    assert first.created and not again.created
    assert first.id == again.id == twin.id
    [other] = driver.yard.submit(driver.bob, [spec]).result()
    assert other.id != first.id
    with pytest.raises(errors.Conflict, match="another body"):
        driver.yard.submit(driver.alice, [spec.evolve(command="false")]).result()


def test_the_same_key_gives_a_run_that_could_not_be_submitted_now(driver: Driver) -> None:
    driver.yard.sites.add("gone", SiteSpec(kind="slurm", served_by="agent")).result()
    spec = RunSpec.parse({"command": "true", "site": "gone", "idempotency_key": "k"})
    [first] = driver.yard.submit(driver.alice, [spec]).result()
    driver.yard.cancel(driver.alice, [first.id]).result()
    driver.yard.sites.remove("gone").result()
    assert [one.id for one in driver.yard.submit(driver.alice, [spec]).result()] == [first.id]
    with pytest.raises(errors.InvalidInput, match="there is no site 'gone'"):
        driver.yard.submit(driver.alice, [spec.evolve(idempotency_key="another")]).result()


def test_an_agent_of_cron_may_be_silent_for_longer(driver: Driver) -> None:
    [run] = driver.submit()
    driver.hello(lease=300)
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    driver.clock.now += 299
    driver.yard.tick()
    assert (driver.kinds(run).count("unreachable"), driver.yard.sites.agents()[0]["state"]) == (0, "alive")
    driver.clock.now += 2
    driver.yard.tick()
    assert driver.kinds(run).count("unreachable") == 1


def test_a_silent_agent_is_unreachable_and_in_the_end_lost(driver: Driver) -> None:
    [run] = driver.submit(retry={"max": 3})
    [claim] = driver.sync().claims
    driver.sync(running(claim), free=NOTHING)
    driver.clock.now += 61
    driver.yard.tick()
    driver.yard.tick()
    assert driver.state(run) == ("running", None)
    assert "unreachable" in driver.yard.get_run(run)["detail"]
    assert driver.kinds(run).count("unreachable") == 1
    driver.sync(free=NOTHING)
    assert driver.yard.sites.agents()[0]["state"] == "alive"
    driver.clock.now += 86_401
    driver.yard.tick()
    # Nobody proved that its processes are gone, so it is not started a second time.
    assert driver.state(run) == ("failed", "lost")
    assert [stop.reason for stop in driver.sync(running(claim), free=NOTHING).stops] == ["superseded"]


def test_tokens_are_known_by_their_digest_alone(driver: Driver) -> None:
    token = driver.yard.access.create(NewToken(name="carol", role=Role.VIEWER)).result()
    assert driver.yard.authenticate(token["secret"]) == Caller(name="carol", role=Role.VIEWER)
    assert token["secret"] not in str(driver.yard.access.tokens())
    driver.yard.access.revoke(token["id"]).result()
    for secret in (token["secret"], "", "ry_unknown", "\udcff"):
        with pytest.raises(errors.Unauthorized):
            driver.yard.authenticate(secret)


def test_an_agents_token_serves_its_site_alone(driver: Driver) -> None:
    with pytest.raises(errors.InvalidInput, match="there is no site 'elsewhere'"):
        driver.yard.access.create(NewToken(name="node7", role=Role.AGENT, site="elsewhere")).result()
    driver.yard.sites.add("elsewhere", SiteSpec(served_by="agent")).result()
    token = driver.yard.access.create(NewToken(name="node7", role=Role.AGENT, site="elsewhere")).result()
    driver.admin = driver.yard.authenticate(token["secret"])
    with pytest.raises(errors.Forbidden, match="may not serve site 'local'"):
        driver.sync()
    with pytest.raises(errors.InvalidInput, match="needs a site"):
        driver.yard.access.create(NewToken(name="x", role=Role.AGENT)).result()


def test_a_parent_that_is_retried_counts_again(driver: Driver) -> None:
    """Its second success must not stand in for the other parent's first."""
    first, second = driver.submit(2)
    [child] = driver.submit(after=[first, second])
    claims = {claim.key.run: claim for claim in driver.sync().claims}
    driver.sync(ended(claims[first]), free=NOTHING)
    driver.yard.retry(driver.alice, [first]).result()
    [again] = driver.sync().claims
    driver.sync(ended(again), free=NOTHING)
    assert driver.take() == [], "the second parent still runs"
    driver.sync(ended(claims[second]), free=NOTHING)
    assert driver.take() == [child]
