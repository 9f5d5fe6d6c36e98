"""The agent's end of the connection to a zygote. Notices only save time: the directories are authoritative."""

import json
import os
import select
import socket
import struct
from typing import Any, Dict, List, Union

from . import json_files

SOCKET = "zygote.sock"
_SEND_TIMEOUT_S = 30
_LONGEST_ADDRESS = 100  # bytes; the kernel takes 107

Path = Union[str, "os.PathLike[str]"]


class ZygoteLink:
    """Not for use by several threads at once. `fileno` can be selected on; any error means: connect again."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def start(self, attempt_directory: Path) -> None:
        """Asks for a runner; `{"started": …}` or `{"failed": …}` follows as a notice."""
        self._send({"start": json_files.to_text(os.fsencode(attempt_directory))})

    def ping(self) -> None:
        """Asks for `{"pong": 1, "pid": …, "runner": <digest>, "runners": n}`."""
        self._send({"ping": 1})

    def quit(self) -> None:
        """No more starts; the zygote releases its socket at once and ends after its last runner."""
        self._send({"quit": 1})

    def poll(self) -> List[Dict[str, Any]]:
        """The notices that have come, without waiting. Raises EOFError when the zygote has ended."""
        while True:
            try:
                data = self._connection.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self._take_lines()
            except ConnectionError:
                data = b""
            if not data:
                return self._last_lines()
            self._received += data

    def wait(self, timeout: float) -> List[Dict[str, Any]]:
        """As `poll`, after waiting for something to come for at most `timeout` seconds."""
        select.select([self], [], [], timeout)
        return self.poll()

    def close(self) -> None:
        self._connection.close()

    def _send(self, message: Dict[str, Any]) -> None:
        self._connection.sendall(json_files.line(message))

    def _take_lines(self) -> List[Dict[str, Any]]:
        *lines, self._received = self._received.split(b"\n")
        return [json.loads(line.decode()) for line in lines]

    def _last_lines(self) -> List[Dict[str, Any]]:
        """Notices before the end are returned first; the next call then reports the end."""
        lines = self._take_lines()
        if not lines:
            raise EOFError("the zygote is gone")
        return lines


def connect(site_directory: Path) -> ZygoteLink:
    """Raises OSError when no zygote listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The kernel's own time limit for sending: one set by Python would also make each look for notices wait.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT_S, 0))
    try:
        _reach(connection, os.fsencode(site_directory))
    except OSError:
        connection.close()
        raise
    return ZygoteLink(connection)


def _reach(connection: socket.socket, site_directory: bytes) -> None:
    """The address of a socket is short; a deep directory is reached through a descriptor of it."""
    path = os.path.join(site_directory, SOCKET.encode())
    if len(path) <= _LONGEST_ADDRESS:
        connection.connect(path)
        return
    directory = os.open(site_directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        connection.connect("/proc/self/fd/%d/%s" % (directory, SOCKET))
    finally:
        os.close(directory)
