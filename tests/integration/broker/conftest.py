"""A broker, a vhost of its own for each test, and connections that end with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.model.intake import Intake
from runyard.model.recipe import Recipe
from runyard.settings import Settings
from runyard.store import open_store
from runyard.yard import Yard
from tests.integration.broker.desks import RECIPE, TASKS, Office
from tests.integration.broker.producers import Producer
from tests.integration.yard.conftest import Clock, Driver
from tests.labs.rabbitmq import RabbitLab


@pytest.fixture
def lab(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    return rabbitmq_lab()


@pytest.fixture
def strict(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    """A broker that takes back what is not acknowledged within seconds, takes nothing large, and replicates nothing."""
    return rabbitmq_lab(consumer_timeout_s=2, max_message_size=10_000, quorum=False)


@pytest.fixture
def limited(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    """A broker that takes nothing large."""
    return rabbitmq_lab(max_message_size=10_000, quorum=False)


@pytest.fixture
def vhost(lab: RabbitLab) -> str:
    return lab.add_vhost()


@pytest.fixture
def connect(component: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    """`connect(url)` is an open Connection; options as of Connection, and `wait_s=0` for one that may not open."""
    component("rabbitmq")
    from runyard.broker.address import BrokerAddress
    from runyard.broker.amqp import Connection

    made: list[Connection] = []

    def get(url: str, *, authority: str = "", wait_s: float = 60, **options: Any) -> Connection:
        made.append(Connection(BrokerAddress.parse(url, authority=authority), **options).start())
        if wait_s:
            made[-1].wait_open(wait_s)
        return made[-1]

    yield get
    for connection in made:
        connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_store"))
    return f"sqlite:///{tmp_path}/yard.db"


@pytest.fixture
def driver(store_url: str, tmp_path: Path) -> Iterator[Driver]:
    """A yard with the recipe `train`, on each kind of store."""
    clock = Clock()
    yard = Yard(Settings(home=tmp_path / "home", public_url="https://yard.example"), open_store(store_url, clock=clock))
    yard.sites.ensure("local", "local").result()
    yard.recipes.put(yard.owner(), "train", Recipe.parse(RECIPE), default=True).result()
    driver = Driver(yard, clock)
    driver.hello()
    yield driver
    yard.close()


@pytest.fixture
def producer(lab: RabbitLab, vhost: str) -> Iterator[Producer]:
    with contextlib.closing(Producer(lab.url(vhost))) as made:
        for queue in ("tasks", "answers"):
            made.declare(queue)
        yield made


@pytest.fixture
def office(driver: Driver, lab: RabbitLab, vhost: str, connect: Callable[..., Any]) -> Iterator[Callable[..., Office]]:
    """`office(*intakes)` opens desks at the test's vhost; without one, for the queue `tasks`."""
    made: list[Office] = []

    def get(*intakes: Intake, url: str = "") -> Office:
        made.append(Office(driver, connect(url or lab.url(vhost)), *(intakes or [TASKS])))
        return made[-1]

    yield get
    for one in made:
        one.stop()
