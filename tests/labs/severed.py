"""A way to PostgreSQL that is cut in the one moment that leaves everything open: it has heard COMMIT, and nobody hears
what it says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from sqlalchemy.engine import make_url


class Severed:
    """`url` leads to the same database as the one it was made with. `sever` cuts it at the next commit, once."""

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (str(target.host), int(target.port or 0))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = target.set(port=self._listener.getsockname()[1]).render_as_string(hide_password=False)
        self._armed, self._open = threading.Event(), list[socket.socket]()

    def sever(self) -> None:
        self._armed.set()

    @classmethod
    @contextlib.contextmanager
    def to(cls, url: str) -> Iterator[Severed]:
        way = cls(url)
        threading.Thread(target=way._accept, daemon=True).start()
        try:
            yield way
        finally:
            for one in (way._listener, *way._open):
                _close(one)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                threading.Thread(target=self._forth, args=(client, server), daemon=True).start()
                threading.Thread(target=_back, args=(server, client), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if b"COMMIT" in data and self._armed.is_set():
                    self._armed.clear()
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                    return  # whoever reads the answer has nobody to bring it to
                server.sendall(data)
        _close(server)


def _back(server: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(1 << 16):
            client.sendall(data)
    _close(client)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
