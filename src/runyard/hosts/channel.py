"""One request to the far side and its answer, over the pipes of a program that leads there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from runyard.hosts import far
from runyard.hosts.far import server

READ = 1 << 16
WRITE = 1 << 20  # at most, and as much as a pipe takes where that may be chosen
GOODBYE_S = 5.0  # for the program to end by itself once the answer is whole

Frame = tuple[bytes, bytes]  # kind and payload


class NoAnswer(Exception):
    """The answer is missing or incomplete. The request may have been executed or not."""

    def __init__(self, text: str, *, code: int | None, said: str, begun: bool) -> None:
        super().__init__(text)
        self.code = code  # of the program; None: it was killed because nothing came any more
        self.said = said  # on its standard error
        self.begun = begun  # the far side had begun to answer


def question(request: Mapping[str, Any], payload: Sequence[bytes] = (), *, first: bool = True) -> bytes:
    """All that is sent: the far side's program if this is its first request, the request, and the bytes that belong to
    it."""
    asked = json.dumps(request).encode()
    return b"".join([far.program() if first else b"", b"%d\n" % len(asked), asked, *payload])


class Channel:
    """A program that leads to the far side, and its pipes. It serves one conversation, or several in turn."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self.is_new = True

    def open(self) -> None:
        """Raises OSError."""
        self.is_new = False
        # Not a pipe: a connection that is kept in the background may hold it open.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it is open as long as the channel)
        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin is not None and self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        with contextlib.suppress(OSError):  # only quicker: fewer turns between us and ssh
            fcntl.fcntl(self.stdin, fcntl.F_SETPIPE_SZ, WRITE)

    @property
    def code(self) -> int | None:
        return self._process.returncode

    def is_idle(self) -> bool:
        """It is alive, and has sent nothing unexpected."""
        waiting = select.poll()
        waiting.register(self.stdout, select.POLLIN)
        return self._process.poll() is None and not waiting.poll(0)

    def said(self) -> bytes:
        """On its standard error."""
        self._errors.seek(0)
        return self._errors.read(READ)

    def forget(self) -> None:
        """Discard its earlier messages before the next conversation."""
        self._errors.seek(0)
        self._errors.truncate()

    def end(self, patience: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self, patience: float = 0.0) -> None:
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        self.end(patience)
        self._errors.close()


class Conversation:
    """Use it as a context; `frames` yields the far side's answer, and raises NoAnswer or the far side's OSError."""

    def __init__(
        self, channel: Channel, asked: bytes, patience: float, more: Iterable[bytes] = (), *, keep: bool = False
    ) -> None:
        """`patience`: seconds without any progress, in either direction, after which it is given up. `more` is sent
        after the request, each piece fetched when it is needed; none of them is empty. `keep`: the channel stays
        open, should it end well."""
        self._channel, self._unsent, self._patience = channel, memoryview(asked), patience
        self._more, self._keep = iter(more), keep
        self._received = bytearray()
        self._begun = self.whole = self.well = self._source_fails = False

    def __enter__(self) -> Conversation:
        if self._channel.is_new:
            try:
                self._channel.open()
            except OSError as error:
                text = f"{self._channel.command[0]} cannot be started here: {error.strerror}"
                raise NoAnswer(text, code=None, said="", begun=False) from None
        self._stdin, self._stdout = self._channel.stdin, self._channel.stdout
        return self

    def __exit__(self, *error: object) -> None:
        if self._keep and self.well:
            self._channel.forget()
        else:
            self._channel.close(GOODBYE_S if self.whole or self._source_fails else 0.0)

    def frames(self) -> Iterator[Frame]:
        self._skip_greetings()
        while True:
            kind, size = server.HEAD.unpack(self._take(server.HEAD.size))
            payload = self._take(size)
            self.whole = kind in (server.END, server.PROBLEM)
            if kind == server.END:
                self.well = not self._unsent and not self._received
                return
            if kind == server.PROBLEM:
                raise OSError(*json.loads(payload))
            if kind != server.BEAT:
                yield kind, payload

    def _skip_greetings(self) -> None:
        """Skip the output of a shell's start-up files, which comes first."""
        while (found := self._received.find(server.MARK)) < 0:
            del self._received[:-READ]
            self._receive()
        del self._received[: found + len(server.MARK)]
        self._begun = True

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            self._receive()
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _receive(self) -> None:
        """Wait for more bytes, and send ours meanwhile."""
        deadline = time.monotonic() + self._patience
        while not self._is_readable(deadline):
            if self._send_some():
                deadline = time.monotonic() + self._patience
        data = os.read(self._stdout.fileno(), READ)
        if not data:
            raise self._cut()
        self._received += data

    def _is_readable(self, deadline: float) -> bool:
        """False when we may write instead."""
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if self._unsent:
            poll.register(self._stdin, select.POLLOUT)
        ready = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
        if not ready:
            self._channel.end(0.0)
            raise self._no_answer(f"no answer within {self._patience:g} seconds", None)
        return self._stdout.fileno() in ready

    def _send_some(self) -> bool:
        try:
            self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent[:WRITE]) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:  # its end reports why it does not read
            self._unsent, self._more = self._unsent[:0], iter(())
        if not self._unsent:
            self._unsent = memoryview(self._next_piece())
        return True

    def _next_piece(self) -> bytes:
        """If our own source fails, the far side works: it sees that the request is incomplete, and cleans up."""
        self._source_fails = True
        piece = next(self._more, b"")
        self._source_fails = False
        return piece

    def _cut(self) -> NoAnswer:
        self._channel.end(GOODBYE_S)
        text = "the answer ended in the middle" if self._begun else "it did not answer"
        return self._no_answer(text, self._channel.code)

    def _no_answer(self, text: str, code: int | None) -> NoAnswer:
        said = self._channel.said() or (b"" if self._begun else bytes(self._received))
        return NoAnswer(text, code=code, said=said.decode(errors="replace"), begun=self._begun)


class ChannelPool:
    """Channels that are kept for the next request: that saves a login, an interpreter and a program. For any thread. A
    channel belongs to the caller that took it until it is returned."""

    def __init__(self, most: int) -> None:
        """`most`: how many wait unused; 0: none is kept."""
        self.most = most
        self._idle: list[tuple[str, Channel]] = []
        self._lock = threading.Lock()

    def take(self, name: str) -> Channel | None:
        """A working channel to that login; broken ones are closed."""
        with self._lock:
            idle, self._idle = self._idle, []
            while idle:
                owner, channel = idle.pop()
                if not channel.is_idle():
                    channel.close()
                elif owner == name:
                    self._idle = [*idle, *self._idle]
                    return channel
                else:
                    self._idle.append((owner, channel))
        return None

    def give(self, name: str, channel: Channel) -> None:
        with self._lock:
            if len(self._idle) < self.most:
                self._idle.append((name, channel))
                return
        channel.close()

    def close(self) -> None:
        """Keep none any more, also none of those in use."""
        with self._lock:
            idle, self._idle, self.most = self._idle, [], 0
        for _, channel in idle:
            channel.close()
