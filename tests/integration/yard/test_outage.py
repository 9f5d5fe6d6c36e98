"""PostgreSQL goes away and comes back under two servers: what one of them does, one of them does again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.settings import Settings
from runyard.yard.agents import reaper
from runyard.yard.agents.reaper import Deadlines
from tests.integration.yard.conftest import NOTHING, Driver, running
from tests.integration.yard.test_servers import Server
from tests.labs import postgres
from tests.labs.waiting import until

pytestmark = pytest.mark.component("postgresql")


class Register:
    """Who does a duty signs in and out. `most`: how many did it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.terms = self.present = self.most = 0

    def duty(self, stop: threading.Event) -> None:
        self._sign(1)
        while not stop.wait(0.02):
            pass
        self._sign(-1)

    def _sign(self, change: int) -> None:
        with self._lock:
            self.present += change
            self.terms += change > 0
            self.most = max(self.most, self.present)


@pytest.fixture
def database() -> Iterator[postgres.Server]:
    made = postgres.Server()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def servers(database: postgres.Server, tmp_path: Path) -> Iterator[list[Server]]:
    with database.database() as url:
        shared = str(tmp_path / "shared")
        made = [Server(Settings(home=tmp_path / home, store=url, blobs=shared)) for home in ("one", "two")]
        yield made
        for server in made:
            server.end()


def test_a_duty_comes_back_after_each_outage_and_is_never_done_by_two(
    database: postgres.Server, servers: list[Server]
) -> None:
    register, rung = Register(), threading.Semaphore(0)
    for server in servers:
        server.start(server.yard.fleet.by_one("duty", register.duty))
    servers[1].yard.hints.listen("topic", rung.release)
    outages: list[Callable[[postgres.Server], None]] = [postgres.Server.end, postgres.Server.kill9, postgres.Server.end]
    until(lambda: register.present == 1, "a first term")
    for go_away in outages:
        terms = register.terms
        go_away(database)
        until(lambda: register.present == 0, "the end of the term")
        database.begin()
        until(lambda: register.present == 1, "a term after the outage")
        assert register.terms == terms + 1
        until(lambda: servers[0].yard.hints.ring("topic") or rung.acquire(timeout=1), "a word from the other server")
    assert register.most == 1
    assert not any(server.is_stopped for server in servers)


def test_a_run_is_not_lost_for_an_outage_in_which_its_agent_could_not_be_heard(driver: Driver) -> None:
    [run] = driver.submit()
    driver.sync(running(driver.sync().claims[0]), free=NOTHING)
    driver.clock.now += 100_000

    def reap(listening: float) -> None:
        deadlines = Deadlines(lease=60, lost_after=86_400, listening=listening)
        driver.yard.store.write(lambda connection: reaper.reap(connection, driver.clock.now, deadlines)).result()

    reap(listening=5)
    assert driver.state(run) == ("running", None)
    reap(listening=61)
    assert driver.state(run) == ("failed", "lost")
