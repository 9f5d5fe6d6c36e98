"""A part with its own channel. The broker closes a channel to refuse an operation, so it is opened again after a
pause."""

from __future__ import annotations

import abc
import logging
from typing import Any

import pika
from pika.channel import Channel
from pika.exceptions import ChannelClosedByClient

from runyard import errors
from runyard.broker.amqp import faults
from runyard.broker.amqp.connection import Connection

FIRST_PAUSE_S = 0.5  # after the broker closed the channel, doubling
LONGEST_PAUSE_S = 30.0

log = logging.getLogger(__name__)


class ChannelPart(abc.ABC):
    """Methods named with an underscore run in the connection's thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel: Channel | None = None
        self._error: errors.RunyardError | None = None
        self._pause = FIRST_PAUSE_S
        self._ended = False
        connection.attach(self)

    @property
    def error(self) -> errors.RunyardError | None:
        """What the broker refused last, until it works."""
        return self._error or self._connection.error

    def close(self) -> None:
        """Close the channel; messages that were not acknowledged return to their queue."""
        self._connection.detach(self)
        self._connection.call(self._end)

    @abc.abstractmethod
    def _begin(self, channel: Channel) -> None:
        """The channel is open."""

    @abc.abstractmethod
    def _stopped(self, error: errors.RunyardError, reason: BaseException) -> None:
        """The channel is closed; everything that waited for an answer on it fails."""

    def opened(self, line: pika.SelectConnection) -> None:
        if self._ended:
            return
        self._channel = line.channel(on_open_callback=self._begin)
        self._channel.add_on_close_callback(self._on_close)

    def _works(self) -> None:
        """The broker accepted everything that was requested."""
        self._error, self._pause = None, FIRST_PAUSE_S

    def _fail(self, error: errors.RunyardError) -> None:
        if self._error is None or self._error.message != error.message:
            log.warning("%s%s", error.message, f" ({error.fix})" if error.fix else "")
        self._error = error

    def _on_close(self, channel: Any, reason: BaseException) -> None:
        line: pika.SelectConnection = channel.connection
        if channel is not self._channel:
            return
        self._channel = None
        error = faults.of_channel(reason)
        if line.is_open and not self._ended:  # otherwise the connection reports why
            if not isinstance(reason, ChannelClosedByClient):  # then we have closed it ourselves
                self._fail(error)
            self._connection.later(self._next_pause(), lambda: self.opened(line) if line.is_open else None)
        self._stopped(error, reason)

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_S)
        return pause

    def _end(self) -> None:
        self._ended = True
        self._close_channel()

    def _close_channel(self) -> None:
        """It opens again after a pause, unless we have ended."""
        if self._channel is not None and self._channel.is_open:
            self._channel.close()
