"""A yard as a process: HTTP, the clock of the reaper, and what runs beside them, until somebody says stop."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import uvicorn

from runyard import errors
from runyard.loop import Loop
from runyard.server import address
from runyard.server.app import build_app
from runyard.server.service import Service
from runyard.yard import Yard

log = logging.getLogger(__name__)

TICK = 5.0  # seconds between two looks at leases and deadlines
RESTART = 5.0  # seconds before a background part that failed is started again
GRACE = 5  # seconds that open requests get after a stop
FAREWELL = 15.0  # seconds that background parts get to end, all of them together

Background = Callable[[threading.Event], None]


def serve(
    yard: Yard,
    background: Iterable[Background] = (),
    *,
    stop: threading.Event | None = None,
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Answer requests until SIGTERM, SIGINT or `stop`.

    Each background part runs in a thread of its own, gets the stop event, and is started again when it fails.
    Raises Conflict when the port is taken. The yard stays open: whoever opened it closes it.
    """
    stop = stop or threading.Event()
    listener = address.bind(yard.settings)
    url = address.url_of(listener)
    service, server = _prepare(yard, stop, lambda: _announce(yard, url, on_listening))
    threads = [_start(part, stop) for part in _parts(yard, background)]
    try:
        server.run(sockets=[listener])
    finally:
        stop.set()
        listener.close()
        _join(threads)
        service.close()
        address.remove_address(yard.settings.address_file)


def _prepare(yard: Yard, stop: threading.Event, started: Callable[[], None]) -> tuple[Service, _Server]:
    app = build_app(yard)
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # Host and address are checked: nobody may set them for others
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE,
    )
    logging.getLogger("uvicorn.error").addFilter(_not_unfinished)
    return service, _Server(config, stop, started, service.stop)


class _Server(uvicorn.Server):
    """uvicorn, stopped by an event, with open streams ended first; a signal is handled and not raised again."""

    def __init__(
        self, config: uvicorn.Config, stop: threading.Event, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._stop, self._started, self._stopping = stop, started, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._stop.is_set()
        if self.should_exit:
            self._stop.set()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._on_signal) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        """It takes no lock: it may have interrupted somebody who has it."""
        self.force_exit = self.should_exit  # the second time somebody is impatient
        self.should_exit = True


def _announce(yard: Yard, url: str, on_listening: Callable[[str], None] | None) -> None:
    address.write_address(yard.settings, url)
    log.info("listening on %s", url, extra={"action": "listening"})
    if on_listening is not None:
        on_listening(url)


def _parts(yard: Yard, background: Iterable[Background]) -> list[Background]:
    def clock(stop: threading.Event) -> None:
        while not stop.wait(TICK):
            yard.tick()

    return [*yard.fleet.parts(), yard.fleet.by_one("clock", clock), *(_in_turn(yard, part) for part in background)]


def _in_turn(yard: Yard, part: Background) -> Background:
    return yard.fleet.by_one(part.name, part) if isinstance(part, Loop) and part.by_one else part


def _start(part: Background, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=_supervise, args=(part, stop), name=f"yard-{part.__name__}", daemon=True)
    thread.start()
    return thread


def _supervise(part: Background, stop: threading.Event) -> None:
    """A part that fails must not leave a yard that answers and does nothing."""
    while not stop.is_set():
        try:
            return part(stop)
        except (errors.DiskFull, errors.YardUnreachable) as error:  # both pass
            log.error("%s waits: %s", part.__name__, error, extra={"action": "part_waits"})
        except Exception:
            log.exception("%s failed; it starts again", part.__name__, extra={"action": "part_failed"})
        stop.wait(RESTART)


def _join(threads: list[threading.Thread]) -> None:
    deadline = time.monotonic() + FAREWELL
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("%s does not end; leaving it behind", thread.name, extra={"action": "part_left"})


def _not_unfinished(record: logging.LogRecord) -> bool:
    """An answer that a stop cuts short is left unfinished on purpose: uvicorn need not report it."""
    return record.getMessage() != "ASGI callable returned without completing response."
