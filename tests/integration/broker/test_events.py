"""Events through a real exchange and to real HTTP servers: every state change, in its order, whatever happens."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.broker.amqp import Connection
from runyard.broker.events import Announcer
from runyard.broker.webhooks import Hook, signature
from runyard.model.webhook import Webhook
from tests.integration.broker.desks import finish
from tests.integration.broker.producers import Producer
from tests.integration.broker.receivers import Receiver
from tests.integration.yard.conftest import Driver
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

EXCHANGE = "runyard.events"
LIFE = ["run.queued", "run.starting", "run.succeeded"]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Receiver]]:
    monkeypatch.setattr("runyard.broker.webhooks.ANSWER_S", 120.0)  # a busy machine may take longer than people wait
    made: list[Receiver] = []

    def make() -> Receiver:
        made.append(Receiver())
        return made[-1]

    yield make
    for one in made:
        one.close()


def hook(driver: Driver, url: str, name: str = "lab", **more: Any) -> Hook:
    return Hook(Webhook.parse_table(name, {"url": url, **more}), driver.yard.feed)


# --- the exchange -------------------------------------------------------------------------------------------------


def test_every_state_change_is_a_message(
    driver: Driver, connect: Callable[..., Connection], lab: RabbitLab, vhost: str
) -> None:
    driver.submit()  # before anybody listens
    announcer = Announcer(connect(lab.url(vhost)), EXCHANGE, driver.yard.feed)
    assert not announcer.tick()
    with contextlib.closing(Producer(lab.url(vhost))) as producer:
        for queue, key in (("all", "run.#"), ("good", "run.succeeded")):
            producer.declare(queue)
            producer.channel.queue_bind(queue, EXCHANGE, key)  # which is there before anything happens
        driver.submit(name="mine", project="digits")
        announcer.tick()
        assert json.loads(producer.receive("all")[1])["event"] == "run.queued"
        finish(driver)
        announcer.tick()
        properties, body = producer.receive("all")
        assert (properties.type, properties.delivery_mode) == ("run.starting", 2)
        told = json.loads(body)
        assert (told["state"], told["attempt"]) == ("starting", 1)
        assert set(told) == {
            "id", "event", "state", "run", "attempt", "at", "message", "project", "name", "owner", "recipe", "site",
        }  # fmt: skip
        ends = [json.loads(producer.receive("good")[1]) for _ in range(2)]
        assert ends[1]["name"] == "mine"


def test_events_wait_for_the_broker_and_none_is_lost(
    driver: Driver, connect: Callable[..., Connection], lab: RabbitLab, vhost: str
) -> None:
    relay = lab.relay()
    connection = connect(lab.url(vhost, port=relay.port))
    announcer = Announcer(connection, EXCHANGE, driver.yard.feed)
    with contextlib.closing(Producer(lab.url(vhost))) as producer:
        producer.channel.exchange_declare(EXCHANGE, "topic", durable=True)
        producer.declare("all")
        producer.channel.queue_bind("all", EXCHANGE, "#")
        relay.cut()
        until(lambda: not connection.is_open, "the cut noticed")
        driver.submit()
        assert not announcer.tick()
        relay.mend()
        connection.wait_open(60)
        again = Announcer(connection, EXCHANGE, driver.yard.feed)  # as after a restart of the yard
        again.tick()
        assert json.loads(producer.receive("all")[1])["event"] == "run.queued"


def test_an_exchange_of_another_kind_is_told(
    driver: Driver, connect: Callable[..., Connection], lab: RabbitLab, vhost: str, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.closing(Producer(lab.url(vhost))) as producer:
        producer.channel.exchange_declare(EXCHANGE, "fanout", durable=True)
    announcer = Announcer(connect(lab.url(vhost)), EXCHANGE, driver.yard.feed)
    driver.submit()
    announcer.tick()
    assert "exchange runyard.events" in trouble(driver, announcer.name)
    driver.clock.now += 3600
    announcer.tick()
    assert caplog.text.count("events cannot be sent to exchange:runyard.events: exchange runyard.events exists") == 1


def trouble(driver: Driver, listener: str) -> str:
    from runyard.store import cursors

    with driver.yard.store.read() as connection:
        row = cursors.get(connection, listener)
    assert row is not None
    return str(row.trouble)


# --- webhooks -----------------------------------------------------------------------------------------------------


def test_a_webhook_gets_signed_messages(driver: Driver, receiver: Callable[[], Receiver], tmp_path: Path) -> None:
    secret, there = tmp_path / "secret", receiver()
    secret.write_text("hush\n")
    lab = hook(driver, there.url, secret_file=str(secret))
    driver.submit(env={"API_KEY": "s3cret"}, command=["train", "--token", "s3cret"])
    lab.tick()
    finish(driver)
    lab.tick()
    assert there.events == LIFE
    for headers, body in there.got:
        expected = signature(b"hush", headers["X-Runyard-Timestamp"], body)
        assert (headers["X-Runyard-Signature"], headers["path"]) == (f"sha256={expected}", "/hook?a=1")
        assert headers["X-Runyard-Delivery"] == str(json.loads(body)["id"])
        assert b"s3cret" not in body


def test_only_what_it_wants(driver: Driver, receiver: Callable[[], Receiver]) -> None:
    there = receiver()
    lab = hook(driver, there.url, states=["succeeded", "failed"], projects=["digits"])
    driver.submit(project="digits")
    driver.submit(project="letters")
    finish(driver)
    lab.tick()
    assert there.events == ["run.succeeded"]
    assert json.loads(there.got[0][1])["project"] == "digits"


def test_a_webhook_that_fails_is_tried_again_later_and_misses_nothing(
    driver: Driver, receiver: Callable[[], Receiver]
) -> None:
    there = receiver()
    lab = hook(driver, there.url)
    there.status = 500
    driver.submit()
    assert not lab.tick()
    assert trouble(driver, lab.name) == "it answers 500"
    there.status = 204
    lab.tick()
    assert there.events == []  # not yet
    finish(driver)
    driver.clock.now += 2
    again = hook(driver, there.url)  # as after a restart of the yard
    again.tick()
    assert there.events == LIFE


def test_a_redirect_is_not_followed(driver: Driver, receiver: Callable[[], Receiver]) -> None:
    there, elsewhere = receiver(), receiver()
    there.status, there.headers = 307, {"Location": elsewhere.url}
    lab = hook(driver, there.url)
    driver.submit()
    lab.tick()
    assert trouble(driver, lab.name).startswith("it answers 307 and sends us to ")
    assert elsewhere.got == []


def test_nobody_listening_there_is_one_sentence(driver: Driver) -> None:
    lab = hook(driver, "http://127.0.0.1:9/")
    driver.submit()
    lab.tick()
    assert trouble(driver, lab.name) == "no answer: Connection refused"


def test_a_slow_webhook_keeps_nobody_waiting(driver: Driver, receiver: Callable[[], Receiver]) -> None:
    slow, quick = receiver(), receiver()
    slow.open.clear()
    stop = threading.Event()
    parts = [hook(driver, slow.url, "slow"), hook(driver, quick.url, "quick")]
    threads = [threading.Thread(target=part, args=(stop,)) for part in parts]
    for thread in threads:
        thread.start()
    driver.submit()
    finish(driver)
    until(lambda: quick.events == LIFE, "the quick one told")
    assert slow.got == []
    slow.open.set()
    until(lambda: slow.events == LIFE, "the slow one told")
    stop.set()
    for thread in threads:
        thread.join()


def test_an_event_that_is_refused_for_a_day_is_left_out(driver: Driver, receiver: Callable[[], Receiver]) -> None:
    there = receiver()
    there.status = 400
    lab = hook(driver, there.url)
    driver.submit()
    lab.tick()
    driver.clock.now += 90_000
    lab.tick()
    there.status = 204
    finish(driver)
    lab.tick()
    assert there.events == LIFE[1:]


def test_two_servers_do_not_tell_the_same_listener_at_once(driver: Driver, receiver: Callable[[], Receiver]) -> None:
    lab = hook(driver, receiver().url)
    driver.submit()
    assert driver.yard.feed.take(lab.name, 10) is not None
    assert driver.yard.feed.take(lab.name, 10) is None
    driver.clock.now += 61  # the first one died
    assert driver.yard.feed.take(lab.name, 10) is not None


def test_a_secret_that_cannot_be_read(driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"webhook.lab: secret_file cannot be read: No such file"):
        hook(driver, "https://example.org/", secret_file=str(tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(errors.ConfigError, match=r"webhook.lab: secret_file is empty"):
        hook(driver, "https://example.org/", secret_file=str(tmp_path / "empty"))
