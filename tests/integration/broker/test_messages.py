"""Messages to a real broker and from it: nothing that was confirmed is lost, and every refusal is one sentence."""

from __future__ import annotations

import contextlib
import logging
import struct
import threading
from collections.abc import Callable

import pytest

from runyard import errors
from runyard.broker.amqp import Connection, Consumer, DeadLetters, Delivery, Message, Publisher, Queue, queues
from tests.integration.broker.producers import Producer, RawHeaders, array
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

Connect = Callable[..., Connection]


class Inbox:
    """Collects what a consumer receives; with `ack` it answers from another thread."""

    def __init__(self, *, ack: bool = True) -> None:
        self.deliveries: list[Delivery] = []
        self._ack = ack

    def __call__(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        if self._ack:
            threading.Thread(target=delivery.ack).start()

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.message.body for delivery in self.deliveries]

    def wait(self, count: int) -> list[bytes]:
        until(lambda: len(self.deliveries) >= count, f"{count} messages", timeout_s=60)
        return self.bodies


@pytest.fixture
def connection(lab: RabbitLab, vhost: str, connect: Connect) -> Connection:
    return connect(lab.url(vhost))


@pytest.fixture
def work(connection: Connection) -> Queue:
    queue = Queue.for_work("work")
    queues.declare(connection, queue).result(90)
    return queue


def ready(connection: Connection, name: str) -> int:
    return queues.declare(connection, Queue(name=name, passive=True)).result(90).messages


# --- queues -----------------------------------------------------------------------------------------------------


def test_a_queue_for_work_is_replicated(lab: RabbitLab, vhost: str, connection: Connection, work: Queue) -> None:
    assert lab.queue(vhost, "work")["type"] == "quorum"
    assert queues.declare(connection, work).result(90).queue == work


def test_without_quorum_queues_it_is_durable_and_told(
    strict: RabbitLab, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    vhost = strict.add_vhost()
    done = queues.declare(connect(strict.url(vhost)), Queue.for_work("work")).result(90)
    made = strict.queue(vhost, "work")
    assert (made["type"], made["durable"], done.queue.arguments) == ("classic", True, {})
    assert "queue work cannot be replicated" in caplog.text


def test_a_classic_queue_of_before_goes_on(connection: Connection) -> None:
    queues.declare(connection, Queue(name="old")).result(90)
    assert queues.declare(connection, Queue.for_work("old")).result(90).queue == Queue(name="old")


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (Queue(name="work", durable=False), "durable is true there and false here"),
        (Queue(name="work", auto_delete=True), "auto_delete is false there and true here"),
        (Queue(name="work", arguments={"x-message-ttl": 5}), "x-message-ttl is none there and 5 here"),
    ],
)
def test_other_flags_are_named(connection: Connection, other: Queue, difference: str) -> None:
    queues.declare(connection, Queue(name="work")).result(90)
    with pytest.raises(errors.BrokerRefused) as caught:
        queues.declare(connection, other).result(90)
    assert caught.value.message == f"queue work exists with other flags: {difference}"
    assert caught.value.fix


def test_flags_of_others_can_be_met_exactly(lab: RabbitLab, vhost: str, connection: Connection) -> None:
    queues.declare(connection, Queue(name="theirs", durable=False)).result(90)
    assert lab.queue(vhost, "theirs")["durable"] is False
    queues.declare(connection, Queue(name="theirs", durable=False)).result(90)


def test_a_queue_that_must_be_there(connection: Connection) -> None:
    with pytest.raises(errors.BrokerRefused, match="the broker has no queue missing"):
        queues.declare(connection, Queue(name="missing", passive=True)).result(90)


def test_a_missing_permission(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    user, password = lab.add_user(vhost, configure="^$")
    connection = connect(lab.url(vhost, user=user, password=password))
    with pytest.raises(errors.BrokerRefused) as caught:
        queues.declare(connection, Queue.for_work("work")).result(90)
    assert caught.value.message == f"user '{user}' has no permission for the queue work on the broker"
    assert "set_permissions" in caught.value.fix


# --- publishing -------------------------------------------------------------------------------------------------


def test_what_is_confirmed_survives_the_broker(lab: RabbitLab, connection: Connection, work: Queue) -> None:
    publisher = Publisher(connection)
    sent = [publisher.send(Message(body=str(number).encode()), "work") for number in range(200)]
    for future in sent:
        future.result(90)
    lab.let_queues_settle()
    lab.kill("n1")
    with pytest.raises(errors.BrokerUnreachable):
        publisher.publish(Message(body=b"lost"), "work")
    lab.start_node("n1")
    connection.wait_open(60)
    until(lambda: ready(connection, "work") == 200, "all of them back")
    publisher.publish(Message(body=b"one more"), "work")


def test_a_message_without_a_queue_is_an_error_and_the_others_arrive(connection: Connection, work: Queue) -> None:
    publisher = Publisher(connection)
    names = ["work", "nowhere", "work", "nowhere", "work"]
    futures = [publisher.send(Message(body=b"x"), name) for name in names]
    failed = [future.exception(90) for future in futures]
    assert [type(error) for error in failed] == [type(None), errors.Unroutable] * 2 + [type(None)]
    assert str(failed[1]) == "the broker has no queue nowhere"
    with pytest.raises(errors.Unroutable, match=r"bound to exchange amq.topic for 'run.ended'"):
        publisher.publish(Message(body=b"x"), "run.ended", exchange="amq.topic")
    publisher.publish(Message(body=b"x"), "run.ended", exchange="amq.topic", mandatory=False)


def test_messages_sent_together_keep_their_order_and_each_has_its_end(connection: Connection, work: Queue) -> None:
    names = ["work", "nowhere", "work"] * 40
    messages = [(Message(body=str(number).encode()), name) for number, name in enumerate(names)]
    failed = [future.exception(90) for future in Publisher(connection).send_all(messages)]
    assert [type(error) for error in failed] == [type(None), errors.Unroutable, type(None)] * 40
    inbox = Inbox()
    Consumer(connection, work, inbox)
    assert inbox.wait(80) == [str(number).encode() for number, name in enumerate(names) if name == "work"]


def test_messages_sent_together_without_a_connection_all_fail(connect: Connect) -> None:
    closed = connect("amqp://127.0.0.1:1", wait_s=0)
    sent = Publisher(closed).send_all([(Message(body=b"x"), "work")] * 3)
    assert [type(future.exception(90)) for future in sent] == [errors.BrokerUnreachable] * 3


def test_an_unknown_exchange_and_the_next_message(connection: Connection, work: Queue) -> None:
    publisher = Publisher(connection)
    with pytest.raises(errors.BrokerRefused, match="the broker has no exchange missing"):
        publisher.publish(Message(body=b"x"), "key", exchange="missing")
    publisher.publish(Message(body=b"x"), "work")


def test_a_message_over_the_limit_does_not_take_others_with_it(strict: RabbitLab, connect: Connect) -> None:
    connection = connect(strict.url(strict.add_vhost()))
    queues.declare(connection, Queue(name="work")).result(90)
    publisher = Publisher(connection)
    large = publisher.send(Message(body=b"x" * 10_001), "work")
    small = publisher.send(Message(body=b"x"), "work")
    with pytest.raises(errors.TooLarge, match="a message of 10001 bytes is over the broker's limit of 10000"):
        large.result(90)
    with pytest.raises(errors.BrokerUnreachable, match="for another message"):
        small.result(90)
    publisher.publish(Message(body=b"x"), "work")


def test_a_message_that_cannot_be_written_does_not_take_others_with_it(connection: Connection, work: Queue) -> None:
    publisher = Publisher(connection)
    futures = [publisher.send(Message(body=b"x", correlation_id=name), "work") for name in ("a", "b" * 256, "c")]
    first, unwritable, last = [future.exception(90) for future in futures]
    assert (first, last) == (None, None)
    assert isinstance(unwritable, errors.BrokerRefused) and "ShortStringTooLong" in str(unwritable)
    publisher.publish(Message(body=b"x"), "work", timeout_s=90)


def test_no_permission_to_write(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    user, password = lab.add_user(vhost, write="^$")
    publisher = Publisher(connect(lab.url(vhost, user=user, password=password)))
    with pytest.raises(errors.BrokerRefused, match=f"user '{user}' has no permission for the exchange"):
        publisher.publish(Message(body=b"x"), "work")


def test_waiting_for_a_confirmation_ends(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    relay = lab.relay()
    connection = connect(lab.url(vhost, port=relay.port))
    queues.declare(connection, Queue(name="work")).result(90)
    publisher = Publisher(connection)
    publisher.publish(Message(body=b"x"), "work")
    relay.freeze()
    with pytest.raises(errors.BrokerUnreachable, match=r"did not confirm a message within 0.5 s"):
        publisher.publish(Message(body=b"x"), "work", timeout_s=0.5)


# --- consuming --------------------------------------------------------------------------------------------------


def test_properties_travel_both_ways(connection: Connection, work: Queue) -> None:
    sent = Message(
        body=b"{}", type="greeting", headers={"a": 1, "b": ["c"]}, correlation_id="42", reply_to="answers",
        message_id="m1",
    )  # fmt: skip
    inbox = Inbox()
    Consumer(connection, work, inbox)
    Publisher(connection).publish(sent, "work")
    inbox.wait(1)
    assert inbox.deliveries[0].message == sent


def test_messages_are_acknowledged_from_another_thread(connection: Connection, work: Queue) -> None:
    inbox = Inbox()
    Consumer(connection, work, inbox, prefetch=3)
    publisher = Publisher(connection)
    for number in range(50):
        publisher.send(Message(body=str(number).encode()), "work")
    assert inbox.wait(50) == [str(number).encode() for number in range(50)]
    until(lambda: ready(connection, "work") == 0, "the queue empty")


def test_no_more_than_the_prefetch_is_held_and_none_when_full(connection: Connection, work: Queue) -> None:
    publisher, inbox = Publisher(connection), Inbox(ack=False)
    consumer = Consumer(connection, work, inbox, prefetch=2)
    for number in range(5):
        publisher.publish(Message(body=str(number).encode()), "work")
    inbox.wait(2)
    until(lambda: ready(connection, "work") == 3, "three waiting")
    consumer.set_prefetch(0)
    until(lambda: not consumer.is_consuming, "the consumer cancelled")
    for delivery in inbox.deliveries:
        delivery.ack()
    publisher.publish(Message(body=b"5"), "work")
    until(lambda: ready(connection, "work") == 4, "four waiting")
    assert len(inbox.deliveries) == 2
    consumer.set_prefetch(4)
    assert inbox.wait(6) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_prefetch_can_change_faster_than_the_broker_answers(connection: Connection, work: Queue) -> None:
    inbox = Inbox()
    consumer = Consumer(connection, work, inbox, prefetch=1)
    for prefetch in [0, 3, 0, 1, 2, 0, 4] * 20:
        consumer.set_prefetch(prefetch)
    Publisher(connection).publish(Message(body=b"x"), "work")
    assert inbox.wait(1) == [b"x"]


def test_a_rejected_message_goes_to_the_next(connection: Connection, lab: RabbitLab, vhost: str, work: Queue) -> None:
    first, second = Inbox(ack=False), Inbox()
    consumer = Consumer(connection, work, first)
    Publisher(connection).publish(Message(body=b"x"), "work")
    first.wait(1)
    consumer.set_prefetch(0)
    Consumer(connection, work, second)
    first.deliveries[0].reject(requeue=True)
    second.wait(1)
    assert second.deliveries[0].redelivered


def test_what_was_not_acknowledged_comes_again_after_a_cut(lab: RabbitLab, vhost: str, connect: Connect) -> None:
    relay = lab.relay()
    connection, work, inbox = connect(lab.url(vhost, port=relay.port)), Queue.for_work("work"), Inbox(ack=False)
    Consumer(connection, work, inbox, prefetch=10)
    until(lambda: lab.admin("GET", "queues", vhost), "the queue declared")
    Publisher(connection).publish(Message(body=b"x"), "work")
    inbox.wait(1)
    relay.cut()
    until(lambda: not connection.is_open, "the cut noticed")
    relay.mend()
    assert inbox.wait(2) == [b"x", b"x"]
    first, second = inbox.deliveries
    assert (first.is_ours, second.is_ours, second.redelivered) == (False, True, True)
    first.ack()  # of a connection that is gone: it must not reach the new one
    second.ack()
    until(lambda: not second.is_ours, "it answered")
    assert connection.is_open


def test_a_consumer_outlives_its_queue_and_its_broker(
    lab: RabbitLab, vhost: str, connection: Connection, work: Queue
) -> None:
    inbox, publisher = Inbox(), Publisher(connection)
    consumer = Consumer(connection, work, inbox)
    until(lambda: consumer.is_consuming, "the consumer there")
    lab.admin("DELETE", "queues", vhost, "work")
    until(lambda: not consumer.is_consuming, "the deletion noticed")
    until(lambda: consumer.is_consuming, "the queue declared again")
    publisher.publish(Message(body=b"a"), "work")
    inbox.wait(1)
    lab.let_queues_settle()
    lab.kill("n1")
    lab.start_node("n1")
    connection.wait_open(60)
    until(lambda: consumer.is_consuming, "the consumer back", timeout_s=60)
    publisher.publish(Message(body=b"b"), "work")
    assert inbox.wait(2) == [b"a", b"b"]


def test_a_message_held_too_long_is_taken_back(strict: RabbitLab, connect: Connect) -> None:
    connection, inbox = connect(strict.url(strict.add_vhost())), Inbox(ack=False)
    consumer = Consumer(connection, Queue(name="work"), inbox)
    until(lambda: consumer.is_consuming, "the consumer there")
    Publisher(connection).publish(Message(body=b"x"), "work")
    inbox.wait(1)
    inbox.wait(2)
    assert inbox.deliveries[1].redelivered


def test_a_consumer_says_why_it_waits(connection: Connection) -> None:
    queues.declare(connection, Queue(name="work", durable=False)).result(90)
    consumer = Consumer(connection, Queue(name="work"), Inbox())
    until(lambda: consumer.error, "a refusal")
    assert "exists with other flags: durable" in str(consumer.error)


def test_a_queue_that_does_not_answer_is_told(
    lab: RabbitLab, connection: Connection, work: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.broker.amqp.consumer.ANSWER_S", 0.5)
    lab.freeze("n1")
    consumer = Consumer(connection, work, Inbox())
    until(lambda: consumer.error, "the silence noticed")
    assert str(consumer.error) == "the broker does not answer for queue work"
    lab.resume("n1")
    until(lambda: consumer.is_consuming, "the consumer there")
    assert consumer.error is None


def test_a_receiver_that_fails_does_not_lose_the_message(connection: Connection, work: Queue) -> None:
    seen: list[Delivery] = []

    def receive(delivery: Delivery) -> None:
        seen.append(delivery)
        if len(seen) == 1:
            raise RuntimeError("not now")
        delivery.ack()

    Consumer(connection, work, receive)
    Publisher(connection).publish(Message(body=b"x"), "work")
    until(lambda: len(seen) == 2, "it again")


# --- dead letters -----------------------------------------------------------------------------------------------


def test_a_message_that_nobody_understands_is_kept_with_the_reason(
    connection: Connection, work: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    publisher, dead = Publisher(connection), Inbox()
    letters = DeadLetters(connection, publisher)
    Consumer(connection, work, lambda delivery: letters.move(delivery, "it is no JSON"))
    publisher.publish(Message(body=b"?", correlation_id="7", headers={"theirs": 1}), "work")
    Consumer(connection, Queue.for_work("work.dead"), dead)
    dead.wait(1)
    moved = dead.deliveries[0].message
    assert (moved.body, moved.correlation_id) == (b"?", "7")
    assert (
        moved.headers.items() >= {"theirs": 1, "x-runyard-reason": "it is no JSON", "x-runyard-queue": "work"}.items()
    )
    assert "it is no JSON" in caplog.text
    until(lambda: ready(connection, "work") == 0, "the queue empty")


def test_headers_that_only_strangers_write_cut_nobody_off(
    connection: Connection, work: Queue, lab: RabbitLab, vhost: str
) -> None:
    dead, letters = Inbox(), DeadLetters(connection, Publisher(connection))
    Consumer(connection, work, lambda delivery: letters.move(delivery, "it is no JSON"))
    deep = b""
    for _ in range(2000):
        deep = array(deep)
    with contextlib.closing(Producer(lab.url(vhost))) as producer:
        headers = {
            "milliseconds": struct.pack(">cQ", b"T", 1_763_000_000_000), "large": struct.pack(">cd", b"d", 1e300),
            "deep": deep, "CC": array(struct.pack(">cI", b"S", 4) + b"work"),
        }  # fmt: skip
        producer.channel.basic_publish("", "work", b"theirs", RawHeaders(headers))
        producer.channel.basic_publish("", "work", b"next")
    Consumer(connection, Queue.for_work("work.dead"), dead)
    assert dead.wait(2) == [b"theirs", b"next"]
    moved = dead.deliveries[0].message.headers
    assert (moved["milliseconds"], moved["large"]) == ("1763000000000", "1e+300")
    assert "CC" not in moved, "the broker would bring the copy back"


# --- three nodes ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_leader_dies_in_mid_stream(rabbitmq_lab: Callable[..., RabbitLab], connect: Connect) -> None:
    """Through a node that stays: what was confirmed arrives, what was not is sent again."""
    lab = rabbitmq_lab(nodes=3)
    vhost = lab.add_vhost()
    queues.declare(connect(lab.url(vhost, node="n1")), Queue.for_work("work")).result(90)
    leader = lab.leader(vhost, "work")
    connection = connect(lab.url(vhost, node=next(node for node in lab.nodes if node != leader)))
    publisher, inbox = Publisher(connection), Inbox()
    Consumer(connection, Queue.for_work("work"), inbox, prefetch=50)
    for number in range(300):
        if number == 100:
            lab.kill(leader)
        _send_until_confirmed(publisher, Message(body=str(number).encode()))
    until(lambda: len(set(inbox.bodies)) == 300, "every message", timeout_s=90)


def _send_until_confirmed(publisher: Publisher, message: Message) -> None:
    def confirmed() -> bool:
        try:
            publisher.publish(message, "work", timeout_s=5)
        except errors.BrokerError:
            return False
        return True

    until(confirmed, "a confirmation", timeout_s=180, every_s=0.1)
