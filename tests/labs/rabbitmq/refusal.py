"""A way to the broker that refuses what newer ones refuse: queues that are neither durable nor exclusive.

RabbitMQ 4.3 ends the whole connection of whoever declares one, with 541 and these words; Debian has an older one.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Self

_FRAME = struct.Struct(">BHI")
_END = b"\xce"
_METHOD, _QUEUE_DECLARE, _CONNECTION_CLOSE = 1, (50, 10), (10, 50)
_PASSIVE, _DURABLE, _EXCLUSIVE = 1, 2, 4
TEXT = (
    b"INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.\n"
    b"By default, this feature is not permitted anymore.\nThe feature will be removed from a future major RabbitMQ "
    b"version, regardless of the configuration; actual version to be determined.\nTo..."
)


class Refusal:
    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._target))
                for work in (self._answers, self._requests):
                    threading.Thread(target=self._guarded, args=(work, client, broker), daemon=True).start()

    @staticmethod
    def _guarded(work: object, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), client, broker:
            work(client, broker)  # type: ignore[operator]

    @staticmethod
    def _answers(client: socket.socket, broker: socket.socket) -> None:
        while data := broker.recv(1 << 16):
            client.sendall(data)

    @staticmethod
    def _requests(client: socket.socket, broker: socket.socket) -> None:
        stream = client.makefile("rb")
        broker.sendall(stream.read(8))  # AMQP, and its version
        while head := stream.read(_FRAME.size):
            kind, _, size = _FRAME.unpack(head)
            rest = stream.read(size + 1)
            if kind == _METHOD and _is_refused(rest):
                client.sendall(_close())
                stream.read(_FRAME.size)  # the client's word that it has heard
                return
            broker.sendall(head + rest)


def _is_refused(payload: bytes) -> bool:
    if struct.unpack_from(">HH", payload) != _QUEUE_DECLARE:
        return False
    flags = payload[6 + 1 + payload[6]]  # after the name, which has its length before it
    return not flags & (_PASSIVE | _DURABLE | _EXCLUSIVE)


def _close() -> bytes:
    method = struct.pack(">HHHB", *_CONNECTION_CLOSE, 541, len(TEXT)) + TEXT + struct.pack(">HH", *_QUEUE_DECLARE)
    return _FRAME.pack(_METHOD, 0, len(method)) + method + _END
