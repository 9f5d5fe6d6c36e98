"""A broker, a vhost of its own for each test, and connections that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.labs.rabbitmq import RabbitLab


@pytest.fixture
def lab(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    return rabbitmq_lab()


@pytest.fixture
def strict(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    """A broker that takes back what is not acknowledged within seconds, takes nothing large, and replicates nothing."""
    return rabbitmq_lab(consumer_timeout_s=2, max_message_size=10_000, quorum=False)


@pytest.fixture
def vhost(lab: RabbitLab) -> str:
    return lab.add_vhost()


@pytest.fixture
def connect(component: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    """`connect(url)` is an open Connection; options as of Connection, and `wait_s=0` for one that may not open."""
    component("rabbitmq")
    from runyard.broker.address import Address
    from runyard.broker.amqp import Connection

    made: list[Connection] = []

    def get(url: str, *, authority: str = "", wait_s: float = 60, **options: Any) -> Connection:
        made.append(Connection(Address.parse(url, authority=authority), **options).start())
        if wait_s:
            made[-1].wait_open(wait_s)
        return made[-1]

    yield get
    for connection in made:
        connection.close()
