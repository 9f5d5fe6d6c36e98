"""TensorBoard as a child process: found, started, and stopped with us."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from runyard import errors

FIRST_PORT, PORTS = 6006, 100
RELOAD_S = 5  # how often it looks into its directory by itself
GRACE_S = 5.0
HAS_IT = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorboard') is None)"
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def find() -> list[str]:
    """The command that starts it in the active environment; raises NotFound."""
    program = shutil.which("tensorboard")
    if program:
        return [program]
    for python in dict.fromkeys(_interpreters()):
        if subprocess.run([python, "-c", HAS_IT], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            return [python, "-m", "tensorboard.main"]
    raise errors.NotFound("there is no TensorBoard in this environment", "pip install tensorboard")


def _interpreters() -> Iterator[str]:
    for name in ("python", "python3"):
        found = shutil.which(name)
        if found:
            yield found
    yield sys.executable


class Viewer:
    """Runs while it is open. A signal that ends us stops it first."""

    def __init__(self, program: list[str], folder: Path, port: int | None, every: float) -> None:
        self._port = port or free_port()
        self._command = [
            *program, "--logdir", str(folder), "--port", str(self._port), "--reload_multifile", "true",
            "--reload_interval", str(int(min(every, RELOAD_S))),
        ]  # fmt: skip
        self._open = contextlib.ExitStack()

    @property
    def url(self) -> str:
        return f"http://localhost:{self._port}/"

    @property
    def code(self) -> int:
        return self._process.returncode or 0

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by itself."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def __enter__(self) -> Viewer:
        self._open.enter_context(_heeded())
        # Its messages are for users; standard output is ours.
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._process.terminate()
        if not self.wait(GRACE_S):
            self._process.kill()
            self._process.wait()
        self._open.close()


@contextlib.contextmanager
def _heeded() -> Iterator[None]:
    """Signals that would end us at once are handled like Ctrl-C."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, interrupt)) for number in ENDINGS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def free_port() -> int:
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("localhost", port))
            return port
    raise errors.Conflict(f"no port from {FIRST_PORT} on is free", "name one with --port")
