"""A yard as a process: HTTP, and the background parts beside it, until it is stopped."""

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

RESTART = 5.0  # seconds before a failed background part is restarted
GRACE = 5  # seconds that open requests get after a stop
FAREWELL = 15.0  # seconds that all background parts get to end

Background = Callable[[threading.Event], None]


def serve(
    yard: Yard,
    background: Iterable[Background] = (),
    *,
    stop: threading.Event | None = None,
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Answer requests until SIGTERM, SIGINT or `stop`.

    Each background part runs in its own thread, gets the stop event, and is restarted if it fails.
    Raises Conflict if the port is in use. The yard stays open: the caller closes it.
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
        proxy_headers=False,  # Host and address are checked: clients must not be able to set them
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
        """It takes no lock, which the interrupted code may hold."""
        self.force_exit = self.should_exit  # a second signal ends at once
        self.should_exit = True


def _announce(yard: Yard, url: str, on_listening: Callable[[str], None] | None) -> None:
    address.write_address(yard.settings, url)
    log.info("listening on %s", url, extra={"action": "listening"})
    if on_listening is not None:
        on_listening(url)


def _parts(yard: Yard, background: Iterable[Background]) -> list[Background]:
    return [*yard.fleet.parts(), *(_in_turn(yard, part) for part in background)]


def _in_turn(yard: Yard, part: Background) -> Background:
    return yard.fleet.by_one(part.name, part) if isinstance(part, Loop) and part.by_one else part


def _start(part: Background, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=_supervise, args=(part, stop), name=f"yard-{part.__name__}", daemon=True)
    thread.start()
    return thread


def _supervise(part: Background, stop: threading.Event) -> None:
    """Restart a failed part, so that no yard answers and does nothing."""
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
            log.warning("%s does not end; not waiting for it", thread.name, extra={"action": "part_left"})


def _not_unfinished(record: logging.LogRecord) -> bool:
    """A stop leaves answers unfinished on purpose: uvicorn need not report it."""
    return record.getMessage() != "ASGI callable returned without completing response."
