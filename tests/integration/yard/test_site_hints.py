"""How many tickets a site could use."""

from __future__ import annotations

from runyard.model.resources import Capacity
from runyard.model.wire import Hello
from tests.integration.yard.conftest import Driver


def join(driver: Driver, agent: str) -> None:
    total = Capacity(cpus=2, memory=1 << 30)
    hello = Hello(site="pool", agent=agent, node=agent, boot_id="boot", version="1", total=total)
    driver.yard.hello(driver.admin, hello).result()


def test_as_many_as_agents_live_or_runs_wait(driver: Driver) -> None:
    join(driver, "one")
    join(driver, "two")
    assert driver.yard.demand() == {}
    driver.submit(1, site="pool")
    assert driver.yard.demand() == {"pool": 1}
    driver.submit(5, site="pool")
    assert driver.yard.demand() == {"pool": 2}


def test_runs_for_any_site_count_everywhere_except_where_runs_must_name_it(driver: Driver) -> None:
    driver.hello()
    join(driver, "one")
    driver.submit(3)
    assert driver.yard.demand() == {"pool": 1}  # the yard's own site needs no ticket
    driver.yard.sites.ensure("pool", "local", explicit=True).result()
    assert driver.yard.demand() == {}


def test_a_drained_site_and_one_without_live_agents_need_none(driver: Driver) -> None:
    join(driver, "one")
    driver.submit(1, site="pool")
    driver.yard.sites.drain("pool", True).result()
    assert driver.yard.demand() == {}
    driver.yard.sites.drain("pool", False).result()
    assert driver.yard.demand() == {"pool": 1}
    driver.clock.now += 10_000
    driver.yard.tick()
    assert driver.yard.demand() == {}
