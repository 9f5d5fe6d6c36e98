"""The RabbitMQ lab is a real broker, and its faults are real."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout

from tests.integration.labs.processes import alive
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

pytestmark = pytest.mark.long

GetLab = Callable[..., RabbitLab]
PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUORUM = {"x-queue-type": "quorum"}


@pytest.fixture
def lab(rabbitmq_lab: GetLab) -> RabbitLab:
    return rabbitmq_lab()


@pytest.fixture
def three(rabbitmq_lab: GetLab) -> RabbitLab:
    return rabbitmq_lab(nodes=3)


@contextmanager
def channel(url: str, **parameters: Any) -> Iterator[BlockingChannel]:
    chosen = pika.URLParameters(url)
    for name, value in {"socket_timeout": 60, "stack_timeout": 60, **parameters}.items():
        setattr(chosen, name, value)
    connection = pika.BlockingConnection(chosen)
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


def send(opened: BlockingChannel, queue: str, *bodies: bytes) -> None:
    opened.confirm_delivery()
    for body in bodies:
        opened.basic_publish("", queue, body, PERSISTENT, mandatory=True)


def count(url: str, queue: str) -> int:
    with channel(url) as opened:
        return int(opened.queue_declare(queue, passive=True).method.message_count)


def test_what_is_confirmed_survives_kill_9(lab: RabbitLab) -> None:
    url = lab.url(lab.add_vhost())
    with channel(url) as opened:
        opened.queue_declare("work", durable=True)
        send(opened, "work", *[b"x"] * 20)
    pid = lab.pid("n1")
    lab.kill("n1")
    assert not alive(pid)
    lab.start_node("n1")
    assert count(url, "work") == 20


def test_an_empty_disk_forgets_everything(lab: RabbitLab) -> None:
    vhost = lab.add_vhost()
    lab.kill("n1")
    lab.start_node("n1", empty=True)
    assert [item["name"] for item in lab.admin("GET", "vhosts")] == ["/"]
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError), channel(lab.url(vhost)):
        pass


def test_users_may_do_what_their_patterns_say(lab: RabbitLab) -> None:
    vhost = lab.add_vhost()
    user, password = lab.add_user(vhost, configure="^mine$")
    url = lab.url(vhost, user=user, password=password)
    with channel(url) as opened:
        opened.queue_declare("mine")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
            opened.queue_declare("theirs")
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        pika.BlockingConnection(pika.URLParameters(lab.url(vhost, user=user, password="wrong")))


def test_tls_is_trusted_by_those_who_know_the_authority(lab: RabbitLab) -> None:
    url = lab.url(lab.add_vhost(), tls=True)
    known = pika.SSLOptions(ssl.create_default_context(cafile=str(lab.authority)), "localhost")
    with channel(url, ssl_options=known) as opened:
        assert opened.is_open
    with pytest.raises(ssl.SSLCertVerificationError):
        pika.BlockingConnection(pika.URLParameters(url))


def test_a_consumer_timeout_of_seconds(rabbitmq_lab: GetLab) -> None:
    lab = rabbitmq_lab(consumer_timeout_s=2)
    with channel(lab.url(lab.add_vhost())) as opened:
        opened.queue_declare("work")
        send(opened, "work", b"x")
        opened.basic_consume("work", lambda *_: None)

        def closed() -> bool:
            opened.connection.process_data_events(0.1)
            return opened.is_closed

        until(closed, "the channel closed by the broker", timeout_s=60)


def test_a_small_message_limit(rabbitmq_lab: GetLab) -> None:
    lab = rabbitmq_lab(max_message_size=1000)
    with channel(lab.url(lab.add_vhost())) as opened:
        opened.queue_declare("work")
        send(opened, "work", b"x" * 1000)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="message size"):
            send(opened, "work", b"x" * 1001)


def test_a_relay_that_is_cut_frozen_and_mended(lab: RabbitLab) -> None:
    relay = lab.relay()
    url = lab.url(lab.add_vhost(), port=relay.port)
    with channel(url) as opened:
        relay.cut()
        with pytest.raises(pika.exceptions.AMQPError):
            opened.queue_declare("work")
    relay.mend()
    relay.freeze()
    with pytest.raises(AMQPConnectorStackTimeout), channel(url, stack_timeout=2):
        pass
    relay.mend()
    with channel(url) as opened:
        opened.queue_declare("work")


def test_tidying_leaves_a_broker_as_new(lab: RabbitLab) -> None:
    vhost = lab.add_vhost()
    lab.add_user(vhost)
    lab.kill("n1")
    lab.tidy()
    assert [item["name"] for item in lab.admin("GET", "vhosts")] == ["/"]
    assert [item["name"] for item in lab.admin("GET", "users")] == [lab.user]


def test_a_quorum_queue_outlives_its_leader(three: RabbitLab) -> None:
    vhost = three.add_vhost()
    with channel(three.url(vhost, node="n1")) as opened:
        opened.queue_declare("work", durable=True, arguments=QUORUM)
        send(opened, "work", *[b"x"] * 20)
    leader = three.leader(vhost, "work")
    three.kill(leader)
    survivor = next(node for node in three.nodes if node != leader)
    until(lambda: three.leader(vhost, "work") != leader, "another leader")
    until(lambda: count(three.url(vhost, node=survivor), "work") == 20, "all of them there")


def test_a_node_of_a_cluster_comes_back_with_an_empty_disk(three: RabbitLab) -> None:
    three.kill("n3")
    three.start_node("n3", empty=True)
    until(lambda: all(node["running"] for node in three.admin("GET", "nodes")), "all three running")
    assert len(three.admin("GET", "nodes")) == 3
