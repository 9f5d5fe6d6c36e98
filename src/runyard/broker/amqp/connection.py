"""A connection to the broker with its own thread, which reconnects after every loss."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import pika
from pika.adapters.select_connection import IOLoop

from runyard import errors
from runyard.broker.address import BrokerAddress
from runyard.broker.amqp import faults

HEARTBEAT_S = 20  # a line that is silent for longer is dead
DIAL_S = 15.0  # for address, TLS and login together
FIRST_PAUSE_S = 0.5  # after a loss, doubling
LONGEST_PAUSE_S = 30.0
STEADY_S = 10.0  # a connection that lasted so long was a good one: the next loss begins with the first pause
FAREWELL_S = 3.0  # how long an orderly end may take

T = TypeVar("T")
log = logging.getLogger(__name__)
logging.getLogger("pika").setLevel(logging.CRITICAL)  # it logs each failure several times, and we log it once


class ConnectionPart(Protocol):
    """A part that uses a connection and restarts with each new one: called in the connection's thread."""

    def opened(self, line: pika.SelectConnection) -> None: ...


class Connection:
    """Everything may be called from any thread, except that the connection's own thread must not wait for a future."""

    def __init__(self, address: BrokerAddress, *, name: str = "runyard", heartbeat_s: int = HEARTBEAT_S) -> None:
        """`name` is shown in the broker's list of connections. Raises ConfigError."""
        self.address = address
        self.replicates = True  # until the broker says that it has no quorum queues
        self._parameters = _parameters(address, name, heartbeat_s)
        self._loop = IOLoop()
        self._changed = threading.Condition()
        self._line: pika.SelectConnection | None = None  # the one that is open
        self._dialling: pika.SelectConnection | None = None
        self._parts: list[ConnectionPart] = []
        self._error: errors.BrokerError | None = None
        self._awaited = False
        self._blocked = ""
        self._opened_at = float("-inf")
        self._pause = FIRST_PAUSE_S
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"broker-{name}", daemon=True)

    def start(self) -> Connection:
        self._thread.start()
        return self

    def open(self, timeout_s: float) -> None:
        """`start` and `wait_open`. The caller reports a refusal, so it is not logged here."""
        self._awaited = True
        try:
            self.start().wait_open(timeout_s)
        finally:
            self._awaited = False

    @property
    def is_open(self) -> bool:
        return self._line is not None

    @property
    def error(self) -> errors.BrokerError | None:
        """Why it is not open."""
        return None if self._line else self._error

    @property
    def blocked(self) -> str:
        """Why the broker takes no messages at this moment, in its own words: `low on disk`."""
        return self._blocked

    def wait_open(self, timeout_s: float) -> None:
        """Raises BrokerRefused at once when the broker refuses, BrokerUnreachable after the timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._line:
                if isinstance(self._error, errors.BrokerRefused):
                    raise self._error
                if not self._changed.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise self._error or errors.BrokerUnreachable(f"the broker {self.address.host} does not answer")

    def line(self) -> pika.SelectConnection:
        """The open one, in the connection's thread; raises BrokerUnreachable."""
        if self._line is None:
            raise errors.BrokerUnreachable(*_words(self._error, self.address))
        return self._line

    def attach(self, part: ConnectionPart) -> None:
        """It starts as soon as the connection is open, and again after each reconnect."""

        def work() -> None:
            self._parts.append(part)
            if self._line:
                part.opened(self._line)

        self.call(work)

    def detach(self, part: ConnectionPart) -> None:
        self.call(lambda: self._parts.remove(part) if part in self._parts else None)

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Run a function in the connection's thread."""
        future: Future[T] = Future()
        with self._changed:
            if self._closed:
                future.set_exception(errors.BrokerUnreachable("the connection to the broker was closed here"))
            else:
                self._loop.add_callback_threadsafe(lambda: _keep_promise(future, function))
        return future

    def ask(self, begin: Callable[[Future[T]], None]) -> Future[T]:
        """Start an operation in the connection's thread that the broker answers later; fails without a connection."""
        answer: Future[T] = Future()

        def begun(asked: Future[None]) -> None:
            if error := asked.exception():
                answer.set_exception(error)

        self.call(lambda: begin(answer)).add_done_callback(begun)
        return answer

    def later(self, delay_s: float, function: Callable[[], None]) -> None:
        """From the connection's thread: call a function there after a delay."""
        self._loop.call_later(delay_s, lambda: _guarded(function))

    def close(self) -> None:
        """Close the connection, and end the thread."""
        if self._thread.ident is None:
            self._closed = True
            self._loop.close()
        elif not self._closed:
            self.call(self._say_goodbye)
            self._thread.join(2 * FAREWELL_S)

    # --- in the connection's thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._loop.call_later(0, self._dial)
        while not self._closed:
            try:
                self._loop.start()
            except Exception:
                log.exception("the connection to the broker met an error that it does not know; it goes on")
        self._loop.process_timeouts()  # what was asked for before the end gets its answer
        self._loop.close()

    def _dial(self) -> None:
        if self._closed:
            return
        self._dialling = pika.SelectConnection(
            self._parameters, self._on_open, self._on_lost, self._on_lost, custom_ioloop=self._loop
        )

    def _on_open(self, line: Any) -> None:
        line.add_on_connection_blocked_callback(lambda _, frame: self._block(frame.method.reason))
        line.add_on_connection_unblocked_callback(lambda *_: self._block(""))
        self._opened_at = time.monotonic()
        with self._changed:
            self._line, self._dialling, self._error = line, None, None
            self._changed.notify_all()
        log.info("connected with the broker %s", self.address)
        for part in tuple(self._parts):
            _guarded(lambda part=part: part.opened(line))  # type: ignore[misc]

    def _on_lost(self, line: Any, reason: BaseException | None) -> None:
        error = faults.of_connection(reason, self.address)
        if not self._closed and not self._is_told(error):
            log.warning("%s%s", error.message, f" ({error.fix})" if error.fix else "")
        with self._changed:
            self._line, self._dialling, self._error, self._blocked = None, None, error, ""
            self._changed.notify_all()
        if self._closed:
            self._loop.stop()
        else:
            self._loop.call_later(self._next_pause(), self._dial)

    def _is_told(self, error: errors.BrokerError) -> bool:
        is_known = self._error is not None and self._error.message == error.message
        return is_known or (self._awaited and isinstance(error, errors.BrokerRefused))

    def _next_pause(self) -> float:
        """Random, so that clients that lost the same broker do not reconnect together."""
        if time.monotonic() - self._opened_at > STEADY_S and self._opened_at > 0:
            self._pause, self._opened_at = FIRST_PAUSE_S, float("-inf")
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_S)
        return pause * random.uniform(0.5, 1.0)

    def _block(self, reason: str) -> None:
        if reason:
            log.warning("the broker %s takes no messages for now: %s", self.address.host, reason)
        self._blocked = reason

    def _say_goodbye(self) -> None:
        with self._changed:
            self._closed = True
        line = self._line or self._dialling
        if line is None:  # between two attempts
            self._loop.stop()
            return
        self._loop.call_later(FAREWELL_S, lambda: self._hang_up(line))
        if not line.is_closing:
            line.close()

    def _hang_up(self, line: Any) -> None:
        """The broker does not answer the close. The library has no public way to end a connection without it."""
        line._terminate_stream(None)
        self._loop.call_later(0, self._loop.stop)


def _parameters(address: BrokerAddress, name: str, heartbeat_s: int) -> pika.ConnectionParameters:
    context = address.tls_context()
    return pika.ConnectionParameters(
        host=address.host, port=address.port, virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.user, address.password),
        ssl_options=pika.SSLOptions(context, address.host) if context else None,
        heartbeat=heartbeat_s, connection_attempts=1, socket_timeout=DIAL_S, stack_timeout=DIAL_S,
        client_properties={"connection_name": name},
    )  # fmt: skip


def _words(error: errors.RunyardError | None, address: BrokerAddress) -> tuple[str, str]:
    if error is None:
        return f"there is no connection with the broker {address.host} yet", ""
    return error.message, error.fix


def _keep_promise(future: Future[T], function: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


def _guarded(function: Callable[[], None]) -> None:
    """One part's error must not end the connection of all."""
    try:
        function()
    except Exception:
        log.exception("a user of the broker's connection failed")
