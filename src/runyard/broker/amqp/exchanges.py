"""Exchanges: the broker passes their messages on to the queues that are bound to them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from runyard.broker.amqp import faults
from runyard.broker.amqp.connection import Connection


def declare(connection: Connection, name: str, kind: str) -> Future[None]:
    """Durable, on a channel for this alone, because a refusal closes it. Raises BrokerRefused, BrokerUnreachable."""
    return connection.ask(lambda done: _ask(connection, name, kind, done))


def _ask(connection: Connection, name: str, kind: str, done: Future[None]) -> None:
    def granted(_: Any) -> None:
        done.set_result(None)
        channel.close()

    def closed(_: Any, reason: BaseException) -> None:
        if not done.done():
            done.set_exception(faults.of_channel(reason))

    channel = connection.line().channel(
        on_open_callback=lambda opened: opened.exchange_declare(name, kind, durable=True, callback=granted)
    )
    channel.add_on_close_callback(closed)
