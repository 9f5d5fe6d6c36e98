"""The zygote's side of a connection: one JSON document per line, both ways, never waiting for the other side."""

import json
import socket
import struct
from typing import Any, Dict, List

from . import records

_LONGEST_LINE = 1 << 16
_LONGEST_QUEUE = 1 << 22  # bytes for a client that does not read


class Client:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.closed = False
        self._received = b""
        self._queue = b""

    @property
    def has_queued(self) -> bool:
        return bool(self._queue)

    def receive(self) -> List[Dict[str, Any]]:
        """The messages that are complete. One that makes no sense closes the connection."""
        try:
            data = self.connection.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        *lines, self._received = (self._received + data).split(b"\n")
        self.closed = not data or len(self._received) > _LONGEST_LINE
        return [message for message in map(self._parse, lines) if message]

    def queue(self, message: Dict[str, Any]) -> None:
        self._queue += records.line(message)

    def flush(self) -> None:
        try:
            while self._queue and not self.closed:
                self._queue = self._queue[self.connection.send(self._queue) :]
        except BlockingIOError:
            self.closed = len(self._queue) > _LONGEST_QUEUE
        except OSError:
            self.closed = True

    def _parse(self, line: bytes) -> Dict[str, Any]:
        try:
            message = json.loads(line.decode())
        except ValueError:
            message = None
        if isinstance(message, dict):
            return message
        self.closed = True
        return {}


def owner(connection: socket.socket) -> int:
    """The user at the other end, by the kernel's word."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)
