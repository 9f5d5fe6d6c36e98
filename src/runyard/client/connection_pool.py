"""Connections to one yard, kept open between requests and shared by threads."""

from __future__ import annotations

import http.client
import os
import select
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from runyard import errors

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT = 10.0
MOST_IDLE = 8
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Pool:
    """Hands out connections: `take` an idle one or `fresh`, then `give` it back or close it."""

    def __init__(self, address: SplitResult, ca_file: str = "") -> None:
        self._address, self._ca_file = address, ca_file
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()

    def take(self) -> http.client.HTTPConnection | None:
        """An idle connection that the other side has not closed, if there is one."""
        with self._lock:
            self._forget_inherited()
            while self._idle:
                connection = self._idle.pop()
                if _is_quiet(connection.sock):
                    return connection
                connection.close()
        return None

    def fresh(self) -> http.client.HTTPConnection:
        """A new connection, dialled; raises OSError."""
        connection = self._build()
        connection.connect()
        _watch_for_silence(connection.sock)
        return connection

    def give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        """A client need not be closed: one that is garbage-collected closes its connections."""
        for connection in self._idle:
            connection.close()

    def _build(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT)
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT, context=self._trusted())

    def _trusted(self) -> ssl.SSLContext:
        import ssl

        try:
            return ssl.create_default_context(cafile=self._ca_file or None)
        except OSError as error:
            raise errors.ConfigError(f"ca_file {self._ca_file} cannot be used: {error.strerror}") from None

    def _forget_inherited(self) -> None:
        """After a fork the sockets are shared with the parent: two processes would use one connection."""
        if os.getpid() != self._process:
            self._process = os.getpid()
            self._idle.clear()


def _is_quiet(connected: socket.socket | None) -> bool:
    """An idle connection has nothing to read, unless it was closed."""
    if connected is None:
        return False
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return not poll.poll(0)


def _watch_for_silence(connected: socket.socket) -> None:
    """A followed log may be silent for hours; the kernel notices when the other machine is gone."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
