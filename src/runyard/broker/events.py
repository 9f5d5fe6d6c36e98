"""Outgoing events: one message for each state change, to a topic exchange; the routing key is `run.<state>`."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from runyard import errors
from runyard.broker.amqp import Connection, Message, Publisher, exchanges
from runyard.broker.listeners import EventBatch, Feed, Listener

ANSWER_S = 10.0


class Announcer(Listener):
    def __init__(self, connection: Connection, exchange: str, feed: Feed) -> None:
        self._connection, self._exchange = connection, exchange
        self._publisher = Publisher(connection)
        self._is_new, self._declared = True, False
        super().__init__(f"exchange:{exchange}", feed)

    def tick(self) -> bool:
        if self._is_new and self._connection.is_open:  # so that others can bind to it before anything happens
            self._is_new = False
            with contextlib.suppress(errors.BrokerError, TimeoutError):  # which is reported with the first event
                self._declare()
        return super().tick()

    def is_ready(self) -> bool:
        return self._connection.is_open

    def tell(self, news: EventBatch) -> bool:
        try:
            self._publish(news.events)
        except (errors.BrokerError, TimeoutError) as error:
            self._declared = False  # it may have been deleted, or the broker is another one
            if self._connection.is_open:
                self.failed(str(error) or f"no answer within {ANSWER_S:g} s")
            else:
                self._feed.give_back(self.name)
            return False
        self.told(news.events[-1]["id"])
        return len(news.events) == self.at_once

    def _publish(self, events: list[dict[str, Any]]) -> None:
        if not self._declared:
            self._declare()
        messages = [(_message(event), event["event"]) for event in events]
        for future in self._publisher.send_all(messages, exchange=self._exchange, mandatory=False):
            future.result(ANSWER_S)

    def _declare(self) -> None:
        exchanges.declare(self._connection, self._exchange, "topic").result(ANSWER_S)
        self._declared = True


def _message(event: dict[str, Any]) -> Message:
    return Message(body=json.dumps(event).encode(), type=event["event"], message_id=f"event-{event['id']}")
