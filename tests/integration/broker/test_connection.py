"""Every way in which a connection fails is one sentence with its fix; what can heal heals by itself."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable

import pytest

from runyard import errors
from runyard.broker.address import BrokerAddress
from runyard.broker.amqp import Connection
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import free_ports, until

Connect = Callable[..., Connection]


def refusal(connect: Connect, url: str, **options: str) -> errors.BrokerRefused:
    with pytest.raises(errors.BrokerRefused) as caught:
        connect(url, **options)
    assert caught.value.fix
    return caught.value


def trouble(connect: Connect, url: str) -> errors.BrokerUnreachable:
    """What is told of a broker that cannot be reached, as soon as that is known."""
    connection = connect(url, wait_s=0)
    until(lambda: connection.error, "a trouble")
    with pytest.raises(errors.BrokerUnreachable) as caught:
        connection.wait_open(0.1)
    return caught.value


def test_a_wrong_password(lab: RabbitLab, vhost: str, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    error = refusal(connect, lab.url(vhost, password="mistaken"))
    assert error.message == "the broker localhost refuses user 'lab': wrong password, or no such user"
    assert "RUNYARD_BROKER_PASSWORD" in error.fix
    assert "mistaken" not in f"{error!r} {error.fix} {caplog.text}"


def test_an_unknown_vhost(lab: RabbitLab, connect: Connect) -> None:
    assert refusal(connect, lab.url("nowhere")).message == "the broker localhost has no vhost 'nowhere'"


def test_a_vhost_of_others(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    user, password = lab.add_user(vhost)
    error = refusal(connect, lab.url(lab.add_vhost(), user=user, password=password))
    assert error.message.startswith(f"user '{user}' may not use the vhost")
    assert "set_permissions" in error.fix


def test_tls_with_the_given_authority(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    assert connect(lab.url(vhost, tls=True), authority=str(lab.authority)).is_open


def test_tls_with_the_authority_of_the_environment(
    lab: RabbitLab, vhost: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(lab.authority))
    assert connect(lab.url(vhost, tls=True)).is_open


def test_an_untrusted_certificate(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    error = refusal(connect, lab.url(vhost, tls=True))
    assert "is not trusted: self-signed certificate in certificate chain" in error.message
    assert "broker_ca_file" in error.fix


def test_a_certificate_of_another_name(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    error = refusal(connect, lab.url(vhost, tls=True, host="127.0.0.1"), authority=str(lab.authority))
    assert "is not trusted: IP address mismatch" in error.message
    assert "as the certificate names it" in error.fix


def test_tls_where_there_is_none(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    url = lab.url(vhost).replace("amqp://", "amqps://")
    assert "does not speak TLS there" in refusal(connect, url).message


def test_in_the_clear_where_there_is_tls(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    error = trouble(connect, lab.url(vhost, tls=True).replace("amqps://", "amqp://"))
    assert "ended the connection before it began" in error.message
    assert "amqps://" in error.fix


@pytest.mark.component("rabbitmq")
@pytest.mark.parametrize(
    ("host", "sentence"),
    [("localhost", "cannot be reached: Connection refused"), ("no.such.host.invalid", "not known")],
)
def test_nobody_there(connect: Connect, host: str, sentence: str) -> None:
    error = trouble(connect, f"amqp://ann:secret@{host}:{free_ports(1)[0]}/lab")
    assert sentence in error.message
    assert error.fix


@pytest.mark.component("rabbitmq")
def test_one_who_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    monkeypatch.setattr("runyard.broker.amqp.connection.DIAL_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert f"127.0.0.1:{port} does not answer" in trouble(connect, f"amqp://a:b@127.0.0.1:{port}/lab").message


def test_it_comes_back_when_the_broker_does(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    connection = connect(lab.url(vhost))
    lab.kill("n1")
    until(lambda: not connection.is_open, "the loss noticed")
    assert connection.error
    lab.start_node("n1")
    connection.wait_open(60)
    assert connection.error is None


def test_a_silent_network_is_noticed_by_the_heartbeat(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    relay = lab.relay()
    connection = connect(lab.url(vhost, port=relay.port), heartbeat_s=1)
    relay.freeze()
    until(lambda: not connection.is_open, "the silence noticed", timeout_s=60)
    relay.mend()
    connection.wait_open(60)


@pytest.mark.component("rabbitmq")
def test_a_trouble_that_stays_is_told_once(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude, caplog.at_level(logging.WARNING):
        connect(f"amqp://ann:secret@127.0.0.1:{rude.getsockname()[1]}/lab", wait_s=0)
        for _ in range(3):
            rude.accept()[0].close()
        told = [record.name for record in caplog.records]  # while it is still the same trouble
    assert told == ["runyard.broker.amqp.connection"]


def test_closing_ends_the_thread_in_every_state(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    relay = lab.relay()
    opened = connect(lab.url(vhost, port=relay.port))
    waiting = connect(f"amqp://ann:secret@localhost:{free_ports(1)[0]}/lab", wait_s=0)
    relay.freeze()
    dialling = connect(lab.url(vhost, port=relay.port), wait_s=0)
    never = Connection(BrokerAddress.parse("amqp://mq.example"))
    for connection in (opened, waiting, dialling, never):
        connection.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("broker-")]
    with pytest.raises(errors.BrokerUnreachable, match="closed here"):
        opened.call(lambda: None).result(90)
