"""Incoming messages: each is acknowledged after it was processed, from any thread, or goes to another consumer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pika
from pika.channel import Channel

from runyard import errors
from runyard.broker.amqp import queues
from runyard.broker.amqp.channel import ChannelPart
from runyard.broker.amqp.connection import Connection
from runyard.broker.amqp.publisher import Message
from runyard.broker.amqp.queues import DeclaredQueue, Queue

ANSWER_S = 30.0  # from asking for a queue to its first message at the latest, or the broker has lost it

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Delivery:
    """One unacknowledged message. Of `ack` and `reject` the first counts; after a lost connection neither has an
    effect: the broker delivers the message again."""

    message: Message
    queue: str
    redelivered: bool
    _consumer: Consumer = field(repr=False)
    _channel: Channel = field(repr=False)
    _tag: int = field(repr=False)
    _answered: bool = field(default=False, repr=False)

    @property
    def is_ours(self) -> bool:
        """The broker still waits for our answer."""
        return not self._answered and self._consumer.has(self._channel)

    def ack(self) -> None:
        """Processed: the broker deletes it."""
        self._once(lambda channel: channel.basic_ack(self._tag))

    def reject(self, *, requeue: bool) -> None:
        """`requeue`: another consumer may get it; otherwise it is deleted, or handled by the queue's own policy."""
        self._once(lambda channel: channel.basic_reject(self._tag, requeue))

    def _once(self, answer: Callable[[Channel], None]) -> None:
        if not self._answered:
            self._answered = True
            self._consumer.answer(self._channel, answer)


class Consumer(ChannelPart):
    """`receive` is called in the connection's thread, so it must not wait for anything."""

    def __init__(
        self, connection: Connection, queue: Queue, receive: Callable[[Delivery], None], *, prefetch: int = 1
    ) -> None:
        """`prefetch` is how many may be unacknowledged at once; see `set_prefetch`."""
        self.queue = queue
        self._receive = receive
        self._wanted = prefetch
        self._active = 0  # the prefetch with which we consume now
        self._changing = False
        self._declared = False
        self._consumer_tag = ""
        super().__init__(connection)

    @property
    def is_consuming(self) -> bool:
        return self._active > 0

    def set_prefetch(self, prefetch: int) -> None:
        """0 stops consuming: to the broker a prefetch of 0 means no limit. Messages that we hold stay ours."""
        self._connection.call(lambda: self._want(prefetch))

    def has(self, channel: Channel) -> bool:
        """Whether this is the current channel: messages of an older one belong to the broker again."""
        return channel is self._channel and channel.is_open

    def answer(self, channel: Channel, answer: Callable[[Channel], None]) -> None:
        """For Delivery."""
        self._connection.call(lambda: answer(channel) if self.has(channel) else None)

    def _want(self, prefetch: int) -> None:
        self._wanted = prefetch
        self._change()

    def opened(self, line: pika.SelectConnection) -> None:
        super().opened(line)
        channel = self._channel
        self._connection.later(ANSWER_S, lambda: self._look_after(channel))

    def _begin(self, channel: Channel) -> None:
        channel.add_on_cancel_callback(self._on_broker_cancel)
        queues.declare(self._connection, self.queue).add_done_callback(lambda done: self._on_declared(channel, done))

    def _on_declared(self, channel: Channel, done: Future[DeclaredQueue]) -> None:
        if channel is not self._channel:
            return
        error = done.exception()
        if error is None:
            self._declared = True
            self._change()
        elif isinstance(error, errors.RunyardError):
            self._fail(error)
            self._connection.later(self._next_pause(), lambda: self._begin_again(channel))
        else:
            raise error

    def _look_after(self, channel: Channel | None) -> None:
        """A replicated queue whose nodes are down, or were killed in its first second, never answers at all."""
        settled = self._declared and not self._changing
        if channel is not None and channel is self._channel and not settled and self._error is None:
            self._fail(
                errors.BrokerUnreachable(
                    f"the broker does not answer for queue {self.queue.name}",
                    "look whether its nodes run; a queue that a broker has lost must be deleted there",
                )
            )
            self._close_channel()

    def _begin_again(self, channel: Channel) -> None:
        if self.has(channel):
            self._begin(channel)

    def _change(self) -> None:
        """Apply the wanted prefetch. It is valid for consumers that start after it, so the old one ends first."""
        channel = self._channel
        if channel is None or not channel.is_open or not self._declared or self._changing:
            return
        if self._active == self._wanted:
            return
        self._changing = True
        if self._active:
            channel.basic_cancel(self._consumer_tag, callback=lambda _: self._changed_to(0))
        else:
            self._consume(channel, self._wanted)

    def _consume(self, channel: Channel, prefetch: int) -> None:
        def begin(_: Any) -> None:
            self._consumer_tag = channel.basic_consume(
                self.queue.name, self._on_message, exclusive=False, callback=lambda _: self._changed_to(prefetch)
            )

        channel.basic_qos(prefetch_count=prefetch, callback=begin)

    def _changed_to(self, prefetch: int) -> None:
        self._active, self._changing = prefetch, False
        if prefetch:
            self._works()
        self._change()

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        delivery = Delivery(
            message=_message(properties, body), queue=self.queue.name, redelivered=bool(method.redelivered),
            _consumer=self, _channel=channel, _tag=method.delivery_tag,
        )  # fmt: skip
        try:
            self._receive(delivery)
        except Exception:
            log.exception("a message of queue %s could not be dealt with; it stays in the queue", self.queue.name)
            self._connection.later(self._next_pause(), lambda: delivery.reject(requeue=True))

    def _on_broker_cancel(self, frame: Any) -> None:
        """The queue was deleted, or its node is down: declare it again."""
        self._fail(errors.BrokerUnreachable(f"the broker took queue {self.queue.name} away; it is declared again"))
        self._close_channel()

    def _stopped(self, error: errors.RunyardError, reason: BaseException) -> None:
        self._active, self._changing, self._declared = 0, False, False


def _message(properties: Any, body: bytes) -> Message:
    headers: Mapping[str, Any] = properties.headers or {}
    return Message(
        body=body, content_type=properties.content_type or "", type=properties.type, headers=headers,
        correlation_id=properties.correlation_id, reply_to=properties.reply_to, message_id=properties.message_id or "",
        persistent=properties.delivery_mode == 2,
    )  # fmt: skip
