"""What several tests share: yards on clusters, because to start one takes longer than most runs, and a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.apart import Apart
from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.cron_yard import CronYard
from tests.acceptance.pool import Tickets
from tests.acceptance.test_ssh_nodes import NodeYard
from tests.labs.cluster import Cluster
from tests.labs.nodes import NodeLab
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard


@pytest.fixture(scope="module")
def yards_by_lab() -> Iterator[dict[Cluster, ClusterYard]]:
    yards: dict[Cluster, ClusterYard] = {}
    yield yards
    for yard in yards.values():
        yard.stop()


@pytest.fixture
def cluster_yard(
    request: pytest.FixtureRequest, yards_by_lab: dict[Cluster, ClusterYard]
) -> Callable[..., ClusterYard]:
    """`cluster_yard("slurm", accounting=True)`: a yard with such a lab as its site, which it asks at the usual pace."""

    def get(kind: str, **options: Any) -> ClusterYard:
        lab: Cluster = request.getfixturevalue(f"{kind}_lab")(**options)
        if lab not in yards_by_lab:
            yards_by_lab[lab] = ClusterYard(lab, kind)
            yards_by_lab[lab].start()
            yards_by_lab[lab].add_site(eager=False)
        return yards_by_lab[lab]

    return get


@pytest.fixture
def cron_yard(request: pytest.FixtureRequest) -> Iterator[Callable[..., CronYard]]:
    """`cron_yard("slurm", "--option", "relay=node", isolate=True)`: a home without a daemon, such a lab as its site."""
    made: list[CronYard] = []

    def build(kind: str, *options: str, eager: bool = True, **lab: Any) -> CronYard:
        made.append(CronYard(request.getfixturevalue(f"{kind}_lab")(**lab), kind, *options))
        made[-1].add_site(eager=eager)
        return made[-1]

    yield build
    for yard in made:
        yard.remove()


@pytest.fixture
def broker(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    return rabbitmq_lab()


@pytest.fixture
def broker_url(broker: RabbitLab) -> str:
    """With a vhost of its own."""
    return broker.url(broker.add_vhost())


@pytest.fixture
def tickets(broker: RabbitLab, broker_url: str) -> Tickets:
    return Tickets(broker, broker_url)


@pytest.fixture(params=["embedded", "apart"])
def either(request: pytest.FixtureRequest) -> Iterator[Callable[..., Yard]]:
    """`either(cpus=2)` starts a yard: in one process with SQLite, or with PostgreSQL, RabbitMQ and an agent in another
    process. What a person sees of the two is the same."""
    if request.param == "embedded":
        yield request.getfixturevalue("make_yard")
        return
    places = {"store": request.getfixturevalue("postgres_store"), "broker": request.getfixturevalue("broker_url")}
    made: list[Apart] = []

    def make(**settings: Any) -> Yard:
        made.append(Apart(**places, **settings))
        return made[-1].start()

    yield make
    for yard in made:
        yard.remove()


@pytest.fixture
def nodes(node_lab: Callable[..., NodeLab]) -> Iterator[NodeYard]:
    """A node that shares no directory with this machine, and is reached by ssh only."""
    yard = Yard(local_site="off")
    try:
        made = NodeYard(node_lab("hoff"), yard)
        made.add_site()
        made.until_up()
        yield made
    finally:
        yard.remove()
