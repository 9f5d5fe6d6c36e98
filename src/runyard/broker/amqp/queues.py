"""Queues with exact flags: the broker refuses to declare an existing queue with other flags."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pika.exceptions import ConnectionClosedByBroker

from runyard.broker.amqp import faults
from runyard.broker.amqp.connection import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Queue:
    name: str
    durable: bool = True
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    passive: bool = False  # it must be there, with whatever flags
    otherwise: Queue | None = None  # what to do with where the broker has no queues of this type

    @classmethod
    def for_work(cls, name: str, *, most: int | None = None) -> Queue:
        """Replicated if the broker supports it, and durable everywhere. With more than `most`, the oldest is
        dropped."""
        arguments = {} if most is None else {"x-max-length": most}
        plain = cls(name=name, arguments=arguments)
        return cls(name=name, arguments={**arguments, "x-queue-type": "quorum"}, otherwise=plain)


@dataclass(frozen=True, kw_only=True)
class DeclaredQueue:
    queue: Queue  # the one that it became
    messages: int  # ready for a consumer
    consumers: int


def declare(connection: Connection, queue: Queue) -> Future[DeclaredQueue]:
    """On a channel for this alone, because a refusal closes it. Raises BrokerRefused, BrokerUnreachable."""
    return connection.ask(lambda done: _ask(connection, queue, done))


def _ask(connection: Connection, queue: Queue, done: Future[DeclaredQueue]) -> None:
    chosen = queue if connection.replicates or queue.otherwise is None else queue.otherwise

    def begin(opened: Any) -> None:
        opened.queue_declare(
            chosen.name, passive=chosen.passive, durable=chosen.durable, exclusive=chosen.exclusive,
            auto_delete=chosen.auto_delete, arguments=dict(chosen.arguments), callback=granted,
        )  # fmt: skip

    def granted(frame: Any) -> None:
        answer = frame.method
        done.set_result(DeclaredQueue(queue=chosen, messages=answer.message_count, consumers=answer.consumer_count))
        channel.close()

    def closed(_: Any, reason: BaseException) -> None:
        if not done.done():
            _refused(connection, chosen, done, reason)

    channel = connection.line().channel(on_open_callback=begin)
    channel.add_on_close_callback(closed)


def _refused(connection: Connection, queue: Queue, done: Future[DeclaredQueue], reason: BaseException) -> None:
    if queue.otherwise is None or not faults.is_about_type(reason):
        done.set_exception(faults.of_channel(reason))
        return
    log.warning("queue %s cannot be replicated: it is lost with the disk of the broker's node", queue.name)
    if isinstance(reason, ConnectionClosedByBroker):
        connection.replicates = False  # a broker without the feature closes the connection of a client that requests it
        connection.attach(_NextTime(connection=connection, queue=queue.otherwise, done=done))
    else:
        _ask(connection, queue.otherwise, done)


@dataclass(frozen=True, kw_only=True)
class _NextTime:
    """Declares it once, when there is a connection again."""

    connection: Connection
    queue: Queue
    done: Future[DeclaredQueue]

    def opened(self, line: Any) -> None:
        self.connection.detach(self)
        _ask(self.connection, self.queue, self.done)
