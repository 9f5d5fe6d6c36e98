"""Outgoing replies: each is confirmed by the broker, tried again if it has no queue for it, and never lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Protocol

from runyard import errors
from runyard.broker.amqp import Connection, Message, Publisher
from runyard.loop import Loop
from runyard.model.intake import Intake
from runyard.model.request import Format, Outcome

AT_ONCE = 20
CONFIRM_S = 60.0
SLOWEST = 1 << 20  # bytes a second: a large reply that is given up too soon would be sent again and again
TIDY_S = 3600.0
DIRECT = "amq.rabbitmq.reply-to."  # the sender itself, without a queue: the broker hands a reply on, and returns it too

log = logging.getLogger(__name__)


class DueReplies(Protocol):
    """The yard's side."""

    def take(self, link_times: Mapping[str, float], limit: int) -> list[Outcome]: ...
    def sent(self, request_id: int, remark: str | None = None) -> None: ...
    def failed(self, request_id: int, trouble: str) -> None: ...
    def give_back(self, request_id: int) -> None: ...
    def tidy(self) -> None: ...


class Replies(Loop):
    """For all intakes of one broker."""

    def __init__(
        self, connection: Connection, intakes: Mapping[str, tuple[Intake, Format]], outbox: DueReplies
    ) -> None:
        self._connection, self._intakes, self._outbox = connection, intakes, outbox
        self._link_times = {name: float(intake.link_time) for name, (intake, _) in intakes.items()}
        self._publisher = Publisher(connection)
        self._largest: int | None = None  # the limit, as learned from a refusal of the broker
        self._tidied_at = float("-inf")
        super().__init__(f"replies-{'-'.join(sorted(intakes))}")

    def tick(self) -> bool:
        """Send due replies; True when there may be more. Without a connection nothing is tried, and nothing lost."""
        if time.monotonic() >= self._tidied_at + TIDY_S:
            self._tidied_at = time.monotonic()
            self._outbox.tidy()
        if not self._connection.is_open:
            return False
        self._largest = None  # it may have been raised since
        taken = self._outbox.take(self._link_times, AT_ONCE)
        for outcome in taken:
            self._deliver(outcome)
        return len(taken) == AT_ONCE

    def _deliver(self, outcome: Outcome) -> None:
        intake, _ = self._intakes[outcome.queue]
        try:
            self._send(outcome)
        except errors.BrokerUnreachable as error:
            if self._connection.is_open:
                self._outbox.failed(outcome.id, error.message)
            else:
                self._outbox.give_back(outcome.id)
        except errors.Unroutable as error:
            if intake.keep_trying:
                self._fail(outcome, error.message)
            else:
                self._outbox.sent(outcome.id, f"no consumer waits: {error.message}")
        except errors.RunyardError as error:
            self._fail(outcome, error.message)
        except Exception as error:
            log.exception("the reply to request %d could not be made", outcome.id)
            self._outbox.failed(outcome.id, repr(error))
        else:
            self._outbox.sent(outcome.id)

    def _fail(self, outcome: Outcome, trouble: str) -> None:
        log.warning("the reply to request %d of queue %s waits: %s", outcome.id, outcome.queue, trouble)
        self._outbox.failed(outcome.id, trouble)

    def _send(self, outcome: Outcome) -> None:
        try:
            self._publish(outcome)
        except errors.TooLarge as error:
            if error.limit is None or (self._largest is not None and error.limit >= self._largest):
                raise
            self._largest = error.limit
            self._publish(outcome)

    def _publish(self, outcome: Outcome) -> None:
        intake, format = self._intakes[outcome.queue]
        room = intake.reply_limit if self._largest is None else min(intake.reply_limit, self._largest)
        message = Message(body=format.write(outcome, room), correlation_id=outcome.correlation_id)
        patience = CONFIRM_S + len(message.body) / SLOWEST
        to_queue = not outcome.reply_to.startswith(DIRECT)
        self._publisher.publish(message, outcome.reply_to, mandatory=to_queue, timeout_s=patience)
