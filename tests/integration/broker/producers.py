"""Programs that ask through a broker, written with the libraries that such programs use."""

from __future__ import annotations

import json
import struct
import time
import uuid
from typing import Any

import pika
from pika.exceptions import AMQPError


class RawHeaders(pika.BasicProperties):
    """Headers as libraries of other languages write them: each with its type and its bytes."""

    def __init__(self, headers: dict[str, bytes]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._table = b"".join(bytes([len(name)]) + name.encode() + value for name, value in headers.items())

    def encode(self) -> list[bytes]:
        return [struct.pack(">HI", self.FLAG_HEADERS, len(self._table)), self._table]


def array(items: bytes) -> bytes:
    """A header that is a list of these."""
    return struct.pack(">cI", b"A", len(items)) + items


class Producer:
    """A program with pika, as the Rodan side: it declares its queues, sends with a correlation id and waits."""

    def __init__(self, url: str, *, durable: bool = True) -> None:
        self._url = url
        parameters = pika.URLParameters(url)
        parameters.heartbeat = 0  # a test may be busy with other things for minutes
        self._connection = pika.BlockingConnection(parameters)
        self.channel = self._connection.channel()
        self._durable = durable

    def declare(self, queue: str) -> str:
        self.channel.queue_declare(queue, durable=self._durable)
        return queue

    def send(
        self, queue: str, body: Any, *, reply_to: str | None = "answers", correlation_id: str | None = "", **more: Any
    ) -> str | None:
        """Returns the correlation id: a fresh one unless it is given."""
        identity = str(uuid.uuid4()) if correlation_id == "" else correlation_id
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        properties = pika.BasicProperties(reply_to=reply_to, correlation_id=identity, **more)
        self.channel.basic_publish("", queue, data, properties)
        return identity

    def receive(self, queue: str = "answers", timeout_s: float = 120) -> tuple[Any, bytes]:
        """The properties and the body of the next message."""
        deadline = time.monotonic() + timeout_s
        while not self._exists(queue) and time.monotonic() < deadline:
            self._connection.sleep(0.1)
        while time.monotonic() < deadline:
            method, properties, body = self.channel.basic_get(queue, auto_ack=True)
            if method is not None:
                return properties, body
            self._connection.sleep(0.02)
        raise AssertionError(f"no message in {queue} within {timeout_s:g} s")

    def _exists(self, queue: str) -> bool:
        """On a connection of its own: who asks for a queue that is not there is cut off."""
        try:
            with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
                connection.channel().queue_declare(queue, passive=True)
        except AMQPError:
            return False
        return True

    def answer(self, queue: str = "answers", timeout_s: float = 120) -> tuple[str | None, Any]:
        """The correlation id and the JSON of the next message."""
        properties, body = self.receive(queue, timeout_s)
        return properties.correlation_id, json.loads(body)

    def is_empty(self, queue: str) -> bool:
        method, _, _ = self.channel.basic_get(queue, auto_ack=False)
        return method is None

    def close(self) -> None:
        self._connection.close()
