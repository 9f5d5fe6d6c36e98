"""Login nodes by OpenSSH's own client: one shared connection each, and pauses for those that do not answer.

The user's ~/.ssh/config applies, so jump hosts, keys, agents and tickets work as on the command line. A connection that
the user shares already (ControlMaster) is used: that is how a second factor, which no program can type, is supported.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runyard.hosts import ssh_errors
from runyard.hosts.base import Unreachable

CONNECT_S = 10
CONNECTING_S = 60.0  # with keys, tickets and jump hosts on the way
ALIVE_S, ALIVE_COUNT = 5, 4  # a connection that is silent for 20 seconds is dead
PERSIST_S = 180  # an unused connection stays so long: longer than cron's minute
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
SHORT = 64  # most bytes of the sockets' directory: an address has 107, and ssh adds to the name
OPTIONS = {
    "BatchMode": "yes",  # prompts cannot be answered
    "ConnectTimeout": CONNECT_S,
    "ServerAliveInterval": ALIVE_S,
    "ServerAliveCountMax": ALIVE_COUNT,
    "LogLevel": "ERROR",  # a user's QUIET would hide why
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "RequestTTY": "no",
}


class Login:
    def __init__(self, name: str, config: str | None, sockets: Path) -> None:
        self.name = name
        self._ssh = ["ssh", *(["-F", config] if config else [])]
        key = hashlib.sha256(f"{config or ''}\0{name}".encode()).hexdigest()[:16]
        self._socket = self._own_socket = sockets / key
        self.trouble = ""  # why it was left
        self.not_before = float("-inf")
        self._pause = FIRST_PAUSE_S

    @property
    def by_hand(self) -> str:
        return shlex.join([*self._ssh, self.name])

    def command(self, far_command: str) -> list[str]:
        """To be run over the shared connection, or over a new one if that has just ended."""
        return [*self._words(self._socket, ControlMaster="no"), self.name, far_command]

    def connect(self) -> None:
        """Share a connection, unless there is one. Raises Unreachable."""
        if _is_served(self._socket):
            return
        self._socket = self._users_socket() or self._own_socket
        if _is_served(self._socket):
            return
        self._socket = self._own_socket
        if not _make_private(self._own_socket.parent):
            raise Unreachable(f"{self._own_socket.parent} is not ours alone: no connection can be shared there")
        with _locked(self._own_socket.with_suffix(".lock")):  # of several processes one connects
            if not _is_served(self._own_socket):
                self._own_socket.unlink(missing_ok=True)
                self._open()

    def disconnect(self) -> None:
        """Close our own connection, which may hang. A connection that the user shares is not closed."""
        if self._socket == self._own_socket:
            self._control("exit")

    def answered(self) -> None:
        self.trouble, self.not_before, self._pause = "", float("-inf"), FIRST_PAUSE_S

    def leave(self, why: str, now: float) -> None:
        """Do not try it again for a while."""
        self.trouble, self.not_before = why, now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)

    def _open(self) -> None:
        words = self._words(self._own_socket, ControlMaster="yes", ControlPersist=PERSIST_S)
        with tempfile.TemporaryFile() as errors:  # not a pipe: what stays in the background may hold it open
            try:
                done = subprocess.run(
                    [*words, "-N", self.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                    timeout=CONNECTING_S, start_new_session=True,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise Unreachable(f"{self.name} did not let us in within {CONNECTING_S:g} seconds") from None
            except OSError as error:
                raise Unreachable(f"ssh cannot be started here: {error.strerror}; install OpenSSH's client") from None
            errors.seek(0)
            said = errors.read(1 << 16).decode(errors="replace")
        if done.returncode:
            raise Unreachable(ssh_errors.of_connection(self.name, said, self.by_hand))

    def _users_socket(self) -> Path | None:
        """Where the user's configuration shares connections to this login."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run([*self._ssh, "-G", self.name], capture_output=True, text=True, timeout=CONNECT_S)
            for line in told.stdout.splitlines():
                if line.startswith("controlpath ") and line != "controlpath none":
                    return Path(line.partition(" ")[2])
        return None

    def _control(self, word: str) -> None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = [*self._words(self._own_socket), "-O", word, self.name]
            subprocess.run(command, capture_output=True, timeout=CONNECT_S)

    def _words(self, shared: Path, **more: object) -> list[str]:
        path = str(shared).replace("%", "%%")  # ssh would put something in its place
        options = {**OPTIONS, "ControlPath": f'"{path}"', **more}
        return [*self._ssh, "-T", *(f"-o{name}={value}" for name, value in options.items())]


class Logins:
    """Several ways to one cluster, tried in order. From any thread."""

    def __init__(self, names: Sequence[str], config: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        sockets = socket_directory()
        self._all = [Login(name, config, sockets) for name in names]
        self._clock = clock
        self._lock = threading.Lock()

    def choose(self) -> Login:
        """The first one that answers, connected. Raises Unreachable."""
        with self._lock:
            for login in self._all:
                if self._clock() < login.not_before:
                    continue
                try:
                    login.connect()
                    return login
                except Unreachable as error:
                    login.leave(str(error), self._clock())
            raise Unreachable("; ".join(login.trouble for login in self._all))

    def answered(self, login: Login) -> None:
        with self._lock:
            login.answered()

    def hangs(self, login: Login, why: str) -> None:
        """The login worked, but there was no answer: the next one may work."""
        with self._lock:
            login.leave(why, self._clock())
        login.disconnect()


def socket_directory() -> Path:
    """A private directory with a short path, the same one for every process of this user."""
    for parent, name in ((os.environ.get("XDG_RUNTIME_DIR", ""), "runyard"), ("/tmp", f"runyard-{os.getuid()}")):
        place = Path(parent, name)
        if parent and len(os.fsencode(place)) <= SHORT and _make_private(place):
            return place
    return Path(tempfile.mkdtemp(prefix="ry-", dir="/tmp"))


def _make_private(place: Path) -> bool:
    """False if it belongs to another user, or others can read it: /tmp is shared by all users."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _is_served(path: Path) -> bool:
    """Whether an ssh listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
