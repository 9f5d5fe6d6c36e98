"""Dead letters: a queue for invalid messages, each with the reason."""

from __future__ import annotations

import dataclasses
import logging
import uuid
from concurrent.futures import Future

from runyard.broker.amqp import queues
from runyard.broker.amqp.connection import Connection
from runyard.broker.amqp.consumer import Delivery
from runyard.broker.amqp.publisher import Publisher
from runyard.broker.amqp.queues import DeclaredQueue, Queue

REASON = "x-runyard-reason"
ORIGIN = "x-runyard-queue"
SUFFIX = ".dead"
_ROUTES = ("CC", "BCC")  # further queues to the broker: a copy with them would go back to where it came from
AGAIN_S = 5.0  # after a message could not be moved

log = logging.getLogger(__name__)


class DeadLetters:
    """A message is acknowledged only when its copy is confirmed: it may exist twice, but is never lost."""

    def __init__(self, connection: Connection, publisher: Publisher) -> None:
        self._connection, self._publisher = connection, publisher

    def move(self, delivery: Delivery, reason: str) -> None:
        """To `<queue>.dead`, in the background. Failures are retried for as long as the message is ours."""
        name = f"{delivery.queue}{SUFFIX}"
        log.warning("a message in queue %s is moved to %s: %s", delivery.queue, name, reason)
        self._try(delivery, name, reason)

    def _try(self, delivery: Delivery, name: str, reason: str) -> None:
        theirs = {header: value for header, value in delivery.message.headers.items() if header not in _ROUTES}
        headers = {**theirs, REASON: reason, ORIGIN: delivery.queue}
        identity = delivery.message.message_id or uuid.uuid4().hex
        copy = dataclasses.replace(delivery.message, headers=headers, message_id=identity, persistent=True)

        def declared(done: Future[DeclaredQueue]) -> None:
            if done.exception() is None:
                self._publisher.send(copy, name).add_done_callback(moved)
            else:
                again(done.exception())

        def moved(done: Future[None]) -> None:
            if done.exception() is None:
                delivery.ack()
            else:
                again(done.exception())

        def again(error: BaseException | None) -> None:
            if delivery.is_ours:
                log.warning("it could not be moved yet: %s", error)
                self._connection.later(AGAIN_S, lambda: self._try(delivery, name, reason))

        queues.declare(self._connection, Queue.for_work(name)).add_done_callback(declared)
