"""A process that has everything loaded and forks one runner per request: a start costs a fork, not an interpreter.

It holds no state: killing it disturbs no run, and another one can be started at any time. As the parent of all runners
it also adopts what a killed runner leaves behind, and ends it.
"""

import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, Dict, List, Optional, Set

from . import cgroup, child, digest, json_files, kernel, process, runner_pool, spawn, zygote_link

_LONGEST_LINE = 1 << 16
_LONGEST_QUEUE = 1 << 22  # bytes for a client that does not read
LOCK = "zygote.lock"
LOG = "zygote.log"
ALREADY_SERVED = 3  # exit code

_IDLE_S = 3600.0
_IDLE_RUNNER_S = 5.0
_LOOK_S = 10.0  # between checks whether the zygote is still needed
_KILL_AGAIN_S = 0.05


def main(directory: bytes) -> int:
    """Returns in the caller's process once the zygote listens; that one goes on by itself, detached."""
    process.close_inherited()
    os.chdir(directory)
    lock = take_lock()
    if lock is None:
        print("another zygote serves this directory", file=sys.stderr)
        return ALREADY_SERVED
    parent, child = socket.socketpair()
    if os.fork() == 0:
        parent.close()
        _live(lock, child)
    child.close()
    parent.sendall(digest().encode())
    if parent.recv(1):
        return 0
    print("the zygote did not start; see %s in its directory" % LOG, file=sys.stderr)
    return 1


def take_lock() -> Optional[int]:
    """Held as long as the zygote listens, so that no other one takes the socket from it."""
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except OSError:
        os.close(lock)
        return None


def _live(lock: int, parent: socket.socket) -> None:
    """Never returns. The parent tells the digest: to compute it loads more than all the rest."""
    code = 1
    try:
        _detach()
        zygote = Zygote(lock, listen(), parent.recv(64).decode())
        parent.sendall(b"1")
        parent.close()
        zygote.serve()
        code = 0
    except BaseException:
        process.print_traceback()
    finally:
        os._exit(code)


def _detach() -> None:
    os.setsid()
    process.point_to_null(0)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    process.catch_signals()
    kernel.adopt_orphans()


def listen() -> socket.socket:
    """Bound by its short name in the current directory: the address of a socket has room for 107 bytes only."""
    if os.path.exists(zygote_link.SOCKET):
        os.unlink(zygote_link.SOCKET)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(zygote_link.SOCKET)
    finally:
        os.umask(mask)
    listener.listen(64)
    listener.setblocking(False)
    return listener


class Zygote:
    def __init__(self, lock: int, listener: socket.socket, version: str) -> None:
        self._lock = lock
        self._listener = listener
        self._socket_file = os.stat(zygote_link.SOCKET).st_ino
        self._digest = version
        self._selector = selectors.PollSelector()  # epoll would be one more descriptor to close in each runner
        self._clients: Set[ZygoteClient] = set()
        self._nursery = runner_pool.Nursery(self._selector, self._descriptors)
        self._quitting = False
        self._busy_at = time.monotonic()
        self._woken, self._wake = os.pipe()

    def serve(self) -> None:
        self._prepare()
        while not self._is_over():
            for key, events in self._selector.select(_KILL_AGAIN_S if self._nursery.is_bereaved else _LOOK_S):
                key.data(events)
            if self._nursery.is_bereaved:
                self._nursery.end_orphans()
            self._spread_notices()
            self._look_around()

    def _prepare(self) -> None:
        """Everything a runner will look up, and nothing that the collector would touch and so copy in each fork."""
        child.spawner = spawn.make()
        for descriptor in (self._woken, self._wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake)
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_signal)
        self._selector.register(self._listener, selectors.EVENT_READ, self._on_connection)
        for look_up in (kernel.boot_id, kernel.node, cgroup.parents):
            look_up()
        gc.disable()
        gc.collect()
        if hasattr(gc, "freeze"):  # Python 3.7
            gc.freeze()

    def _is_over(self) -> bool:
        if len(self._nursery):
            return False
        return self._quitting or (not self._clients and time.monotonic() - self._busy_at > _IDLE_S)

    def _look_around(self) -> None:
        if self._clients or self._nursery.busy:
            self._busy_at = time.monotonic()
        self._nursery.dismiss_idle(0 if self._quitting else _IDLE_RUNNER_S)
        if not self._quitting and not self._owns_socket():
            self._quit()

    def _owns_socket(self) -> bool:
        """Not if the site's directory or its socket was deleted: no client could connect any more."""
        try:
            return os.stat(zygote_link.SOCKET).st_ino == self._socket_file
        except OSError:
            return False

    # Clients

    def _on_connection(self, _: int) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return
        if _owner(connection) != os.getuid():
            connection.close()
            return
        client = ZygoteClient(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda events: self._on_client(client, events))

    def _on_client(self, client: "ZygoteClient", events: int) -> None:
        if client not in self._clients:  # dropped while another one was served
            return
        if events & selectors.EVENT_READ:
            for message in client.receive():
                self._obey(client, message)
        self._flush(client)

    def _obey(self, client: "ZygoteClient", message: Dict[str, Any]) -> None:
        if "start" in message:
            client.queue(self._start(str(message["start"])))
        elif "ping" in message:
            client.queue({"pong": 1, "pid": os.getpid(), "runner": self._digest, "runners": self._nursery.busy})
        elif "quit" in message:
            self._quit()

    def _start(self, directory: str) -> Dict[str, Any]:
        if self._quitting:
            return {"failed": directory, "error": "this zygote takes no more starts"}
        try:
            return {"started": directory, "pid": self._nursery.start(directory)}
        except OSError as error:
            return {"failed": directory, "error": str(error.strerror)}

    def _spread_notices(self) -> None:
        notices = self._nursery.take_notices()
        for client in list(self._clients) if notices else ():
            for notice in notices:
                client.queue(notice)
            self._flush(client)

    def _flush(self, client: "ZygoteClient") -> None:
        client.flush()
        if client.closed:
            self._selector.unregister(client.connection)
            self._clients.discard(client)
            client.connection.close()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.has_queued else 0)
        key = self._selector.get_key(client.connection)
        if key.events != events:
            self._selector.modify(client.connection, events, key.data)

    def _quit(self) -> None:
        """The name is free for the next zygote at once; this one stays for the runners it has."""
        if self._quitting:
            return
        self._quitting = True
        if self._owns_socket():
            os.unlink(zygote_link.SOCKET)
        self._selector.unregister(self._listener)
        self._listener.close()
        os.close(self._lock)

    # Runners

    def _on_signal(self, _: int) -> None:
        if signal.SIGTERM in os.read(self._woken, 1 << 16):
            self._quit()
        self._nursery.reap()

    def _descriptors(self) -> List[int]:
        """What a runner must not inherit."""
        own = [self._lock, self._listener.fileno(), self._woken, self._wake]
        return own + [client.connection.fileno() for client in self._clients]


class ZygoteClient:
    """One JSON document per line, both ways, never waiting for the other side."""

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
        self._queue += json_files.line(message)

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


def _owner(connection: socket.socket) -> int:
    """The user at the other end, as reported by the kernel."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)
