"""Incoming requests: messages of one queue, each stored before it is acknowledged.

An invalid message is moved to `<queue>.dead` with the reason, and its sender gets an error; it never blocks the
messages behind it. After an error that is not the message's fault (no such recipe yet, a full disk) it is kept and
tried again.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from runyard import errors
from runyard.broker.amqp import Connection, Consumer, DeadLetters, Delivery, Publisher, Queue, queues
from runyard.loop import Loop
from runyard.model.intake import Intake
from runyard.model.request import Asked, Format, Params

AGAIN_S = 5.0  # after something that is not the message's fault
ANSWER_S = 10.0
LONGEST_REASON = 2000  # characters
_FAULTS = (errors.InvalidInput, errors.Conflict, errors.TooLarge)  # of a message itself

log = logging.getLogger(__name__)


class RequestReceiver(Protocol):
    """The yard's side. Both resolve after the commit."""

    def accept(self, intake: Intake, asked: Asked, bodies: list[Params], *, is_group: bool) -> Future[Any]: ...

    def refuse(self, intake: Intake, asked: Asked, error: str) -> Future[Any]: ...


class Reception(Loop):
    """For one queue."""

    again_s = 1.0
    by_one = False  # the broker shares out messages, and the store knows those that come twice

    def __init__(
        self, connection: Connection, intake: Intake, format: Format, desk: RequestReceiver, largest: int
    ) -> None:
        """`largest`: bytes of a body, and of all configurations that it stands for."""
        self._connection, self._intake, self._format, self._desk, self._largest = (
            connection, intake, format, desk, largest,
        )  # fmt: skip
        self._inbox: collections.deque[Delivery] = collections.deque()
        self._held: list[Delivery] = []
        self._paused_until = float("-inf")
        self._trouble = ""
        self._dead_letters = DeadLetters(connection, Publisher(connection))
        super().__init__(f"intake-{intake.name}")
        self._consumer = Consumer(connection, queue_of(intake), self._receive, prefetch=intake.prefetch)

    @property
    def error(self) -> errors.RunyardError | None:
        """Why the broker sends us nothing."""
        return self._consumer.error

    def tick(self) -> bool:
        """Process the messages that have arrived. Does not wait: acknowledgements follow the commits."""
        self._held = [delivery for delivery in self._held if delivery.is_ours]
        while self._inbox and time.monotonic() >= self._paused_until:
            delivery = self._inbox.popleft()
            if delivery.is_ours:
                self._held.append(delivery)
                self._handle(delivery)
        return False

    def drain(self, deadline: float) -> None:
        """Until the queue is empty and everything of it is acknowledged, or until the deadline (monotonic)."""
        with contextlib.suppress(errors.BrokerError, TimeoutError):  # it went away meanwhile
            while time.monotonic() < deadline and self.error is None and not self._is_drained():
                self._wait(0.05)
                self.tick()

    def _is_drained(self) -> bool:
        if not self._consumer.is_consuming or self._inbox or any(one.is_ours for one in self._held):
            return False
        asked = Queue(name=self._intake.queue, passive=True)
        return queues.declare(self._connection, asked).result(ANSWER_S).messages == 0 and not self._inbox

    def _receive(self, delivery: Delivery) -> None:
        self._inbox.append(delivery)
        self.ring()

    def _handle(self, delivery: Delivery) -> None:
        raw = hashlib.sha256(delivery.message.body).hexdigest()
        sender = self._format.identify(delivery.message)
        asked = Asked(sender=sender, digest=raw, redelivered=delivery.redelivered)
        try:
            bodies, is_group = self._read(delivery)
            asked = Asked(sender=sender, digest=_digest(bodies), redelivered=delivery.redelivered)
            accepted = self._desk.accept(self._intake, asked, bodies, is_group=is_group)
        except Exception as error:
            self._object(delivery, asked, error)
        else:
            self._afterwards(accepted, delivery, asked, delivery.ack)

    def _read(self, delivery: Delivery) -> tuple[list[Params], bool]:
        size = len(delivery.message.body)
        if size > self._largest:
            raise errors.TooLarge(
                f"the body has {size:,} bytes, more than {self._largest:,}",
                "send it in parts, or raise body_limit in config.toml",
            )
        try:
            bodies, is_group = self._format.read(delivery.message, self._largest)
        except errors.RunyardError:
            raise
        except Exception as error:  # an unforeseen message must not block those behind it
            log.exception("a message of queue %s could not be read", self._intake.queue)
            raise errors.InvalidInput(f"the message cannot be understood: {error!r}") from None
        return [self._intake.pick(body) for body in bodies], is_group

    def _afterwards(self, done: Future[Any], delivery: Delivery, asked: Asked, then: Callable[[], None]) -> None:
        def settled(done: Future[Any]) -> None:
            error = done.exception()
            if error is None:
                self._trouble = ""
                then()
            else:
                self._object(delivery, asked, error)

        done.add_done_callback(settled)

    def _object(self, delivery: Delivery, asked: Asked, error: BaseException) -> None:
        if not isinstance(error, _FAULTS):
            self._postpone(delivery, error)
            return
        reason = f"{error.message} ({error.fix})" if error.fix else error.message
        self._afterwards(
            self._desk.refuse(self._intake, asked, _plain(error.message)),
            delivery,
            asked,
            lambda: self._dead_letters.move(delivery, _plain(reason)),
        )

    def _postpone(self, delivery: Delivery, error: BaseException) -> None:
        told = str(error)
        if told != self._trouble:
            log.warning("requests of queue %s wait: %s", self._intake.queue, told)
        self._trouble, self._paused_until = told, time.monotonic() + AGAIN_S
        self._inbox.appendleft(delivery)


def queue_of(intake: Intake) -> Queue:
    return Queue(
        name=intake.queue, durable=intake.durable, auto_delete=intake.auto_delete, arguments=intake.arguments,
        passive=intake.passive,
    )  # fmt: skip


def _plain(text: str) -> str:
    """In a form that the store and the broker accept: quotes of a message may be long, and end in half a character."""
    return text[:LONGEST_REASON].encode("utf-8", "replace").decode()


def _digest(bodies: list[Params]) -> str:
    """Digest of the request's content, independent of its format."""
    return hashlib.sha256(json.dumps(bodies, sort_keys=True).encode()).hexdigest()
