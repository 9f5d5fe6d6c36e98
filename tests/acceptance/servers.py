"""Several servers of one yard: processes with homes of their own, one PostgreSQL, one directory for blobs; and a door
to all of them, as a balancer is."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import create_engine, text

from runyard.store.engine import parse_url
from runyard.store.session import DUTIES, key_of
from tests.acceptance.witness import until
from tests.labs.yard import Yard

HOLDER = text(
    """
    SELECT activity.application_name FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid)
    WHERE lock.locktype = 'advisory' AND lock.classid = :class AND lock.objid = :key AND lock.granted
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    """
)


def holder_of(store: str, duty: str) -> int | None:
    """The process that has a duty now, by the word of PostgreSQL."""
    engine = create_engine(parse_url(store))
    try:
        with engine.connect() as connection:
            key = key_of(duty) % (1 << 32)
            label = connection.execute(HOLDER, {"class": DUTIES, "key": key}).scalar()
    finally:
        engine.dispose()
    return int(label.rpartition(":")[2]) if label else None


def by_duty(servers: Iterable[Yard], store: str, duty: str) -> list[Yard]:
    """Who has the duty comes first, as soon as somebody has it: on a busy machine that may be any of them."""
    until(lambda: holder_of(store, duty), what=f"somebody who does {duty}")
    holder = holder_of(store, duty)
    return sorted(servers, key=lambda server: server.pid != holder)


class Door:
    """A port that leads to one server after the other, connection by connection, past those that are gone."""

    def __init__(self, servers: list[Yard]) -> None:
        self._targets = itertools.cycle([_address(server) for server in servers])
        self._count = len(servers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []

    @classmethod
    @contextlib.contextmanager
    def opened(cls, servers: list[Yard]) -> Iterator[Door]:
        door = cls(servers)
        threading.Thread(target=door._accept, daemon=True).start()
        try:
            yield door
        finally:
            for one in (door._listener, *door._open):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._join(client)

    def _join(self, client: socket.socket) -> None:
        for _ in range(self._count):
            with contextlib.suppress(OSError):
                server = socket.create_connection(next(self._targets), 5)
                server.settimeout(None)
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()
                return
        client.close()


def _address(server: Yard) -> tuple[str, int]:
    host, _, port = server.url.rpartition("//")[2].rpartition(":")
    return host, int(port)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def pair(make_yard: Callable[..., Yard], **settings: Any) -> tuple[Yard, Yard]:
    """Two servers that take no runs on their own machine."""
    return make_yard(local_site="off", **settings), make_yard(local_site="off", **settings)


@contextlib.contextmanager
def command(yard: Yard, *words: str) -> Iterator[subprocess.Popen[str]]:
    """One that is under way at this server, and ended afterwards."""
    with subprocess.Popen(
        yard.command(*words), env=yard.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
