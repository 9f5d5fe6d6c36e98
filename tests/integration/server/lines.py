"""A line between a client and a server that is cut or damaged on purpose."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

Fault = Callable[[bytes], bytes | None]  # what becomes of bytes on their way to the server; None cuts the line


class Line:
    """Listens, and passes everything on to the server at `url`. `sent` counts the bytes that clients sent."""

    def __init__(self, url: str, fault: Fault = lambda data: data) -> None:
        place = urlsplit(url)
        self._target = (place.hostname or "", place.port or 0)
        self.fault = fault
        self.sent = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, outward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passed = self._spoil(data) if outward else data
                if passed is None:
                    break
                target.sendall(passed)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _spoil(self, data: bytes) -> bytes | None:
        self.sent += len(data)
        return self.fault(data)


def cut_after(*counts: int) -> Fault:
    """The line is cut after so many bytes, then after so many more, and then no more."""
    left = list(counts)

    def fault(data: bytes) -> bytes | None:
        if not left:
            return data
        left[0] -= len(data)
        if left[0] > 0:
            return data
        left.pop(0)
        return None

    return fault


def damage(marker: bytes, times: int) -> Fault:
    """The marker arrives as something else, so many times."""
    left = [times]

    def fault(data: bytes) -> bytes:
        if left[0] and marker in data:
            left[0] -= 1
            return data.replace(marker, bytes(len(marker)))
        return data

    return fault
