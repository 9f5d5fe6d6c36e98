"""Outgoing messages: stored on disk by the broker, confirmed by it, and an error if it has no queue for one."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pika
from pika.channel import Channel
from pika.spec import Basic

from runyard import errors
from runyard.broker.amqp import faults
from runyard.broker.amqp.channel import ChannelPart
from runyard.broker.amqp.connection import Connection

CONFIRM_S = 10.0
_PERSISTENT, _TRANSIENT = 2, 1


@dataclass(frozen=True, kw_only=True)
class Message:
    body: bytes
    content_type: str = "application/json"
    type: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None
    reply_to: str | None = None
    message_id: str = field(default_factory=lambda: uuid.uuid4().hex)  # by which a returned message is recognised
    persistent: bool = True

    def properties(self) -> pika.BasicProperties:
        return pika.BasicProperties(  # type: ignore[no-untyped-call]
            content_type=self.content_type, type=self.type, headers=dict(self.headers) or None,
            correlation_id=self.correlation_id, reply_to=self.reply_to, message_id=self.message_id,
            delivery_mode=_PERSISTENT if self.persistent else _TRANSIENT, timestamp=int(time.time()),
        )  # fmt: skip


@dataclass(kw_only=True)
class _Sent:
    message: Message
    exchange: str
    key: str
    mandatory: bool
    future: Future[None]
    returned: bool = False


class Publisher(ChannelPart):
    """Many messages may be on their way at once; each has its own future."""

    def __init__(self, connection: Connection) -> None:
        self._ready = False
        self._unsent: deque[_Sent] = deque()  # the channel is being opened
        self._unconfirmed: dict[int, _Sent] = {}  # by delivery tag, in their order
        self._tag = 0
        super().__init__(connection)

    def publish(
        self, message: Message, key: str, *, exchange: str = "", mandatory: bool = True, timeout_s: float = CONFIRM_S
    ) -> None:
        """Wait until the broker has it. Raises Unroutable, TooLarge, BrokerRefused, BrokerUnreachable; after the last
        it is not known whether it arrived."""
        future = self.send(message, key, exchange=exchange, mandatory=mandatory)
        try:
            future.result(timeout_s)
        except TimeoutError:
            reason = f" (it says: {self._connection.blocked})" if self._connection.blocked else ""
            host = self._connection.address.host
            raise errors.BrokerUnreachable(
                f"the broker {host} did not confirm a message within {timeout_s:g} s{reason}"
            ) from None

    def send(self, message: Message, key: str, *, exchange: str = "", mandatory: bool = True) -> Future[None]:
        """The future resolves when the broker has it, in the connection's thread; without a connection it fails."""
        return self.send_all([(message, key)], exchange=exchange, mandatory=mandatory)[0]

    def send_all(
        self, messages: Iterable[tuple[Message, str]], *, exchange: str = "", mandatory: bool = True
    ) -> list[Future[None]]:
        """As `send`, each with its key, in their order. The connection's thread is woken once, and a broker that gets
        them together confirms them together."""
        sent = [
            _Sent(message=message, exchange=exchange, key=key, mandatory=mandatory, future=Future())
            for message, key in messages
        ]

        def tried(attempt: Future[None]) -> None:
            if error := attempt.exception():
                for one in sent:
                    _settle(one, error)

        self._connection.call(lambda: self._send(sent)).add_done_callback(tried)
        return [one.future for one in sent]

    def _send(self, sent: Iterable[_Sent]) -> None:
        self._connection.line()  # raises without one
        for one in sent:
            if self._ready and self._channel is not None and self._channel.is_open:
                self._transmit(self._channel, one)
            else:
                self._unsent.append(one)

    def _transmit(self, channel: Channel, sent: _Sent) -> None:
        try:
            channel.basic_publish(
                sent.exchange, sent.key, sent.message.body, sent.message.properties(), mandatory=sent.mandatory
            )
        except Exception as error:  # nothing of it was sent, so the broker does not count it, and neither do we
            _settle(sent, errors.BrokerRefused(f"a message cannot be written for the broker: {error!r:.200}"))
        else:
            self._tag += 1
            self._unconfirmed[self._tag] = sent

    def _begin(self, channel: Channel) -> None:
        def ready(_: Any) -> None:
            self._ready = True
            self._works()
            while self._unsent:
                self._transmit(channel, self._unsent.popleft())

        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=ready)

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        """It comes before the confirmation."""
        for sent in self._unconfirmed.values():
            if sent.message.message_id == properties.message_id:
                sent.returned = True

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        for sent in self._take(method.delivery_tag, method.multiple):
            if sent.returned:
                _settle(sent, _unroutable(sent))
            elif isinstance(method, Basic.Nack):
                _settle(sent, errors.BrokerUnreachable("the broker could not keep a message; try again"))
            else:
                _settle(sent, None)

    def _take(self, tag: int, multiple: bool) -> list[_Sent]:
        tags = [known for known in self._unconfirmed if known <= tag] if multiple else [tag]
        return [self._unconfirmed.pop(known) for known in tags if known in self._unconfirmed]

    def _stopped(self, error: errors.RunyardError, reason: BaseException) -> None:
        """One refusal closes the channel for all: a message over the limit is recognized by its size."""
        waiting = [*self._unconfirmed.values(), *self._unsent]
        self._unconfirmed.clear()
        self._unsent.clear()
        self._ready, self._tag = False, 0
        too_large = faults.refused_size(reason)
        innocent = errors.BrokerUnreachable("the broker closed the channel for another message; try again")
        for sent in waiting:
            is_guilty = too_large is None or len(sent.message.body) == too_large
            _settle(sent, error if is_guilty else innocent)


def _unroutable(sent: _Sent) -> errors.Unroutable:
    if sent.exchange:
        return errors.Unroutable(
            f"no queue of the broker is bound to exchange {sent.exchange} for {sent.key!r}",
            "bind one, or correct the key",
        )
    return errors.Unroutable(f"the broker has no queue {sent.key}", "declare it there, or correct the name")


def _settle(sent: _Sent, error: BaseException | None) -> None:
    if error is not None:
        sent.future.set_exception(error)
    else:
        sent.future.set_result(None)
