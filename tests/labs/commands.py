"""`runyard WORDS…` as a process of its own, forked from one that has everything imported already.

A new interpreter spends a fifth of a second of CPU on imports, a yard more than a second, and tests start thousands of
them. The child has its own arguments, environment, directory and standard streams, shows them in /proc, and ends as
Python ends. What an interpreter reads only when it starts (`PYTHON…`, the locale) belongs to the process that it is
forked from: see `Interpreter`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_AT_START = ("PYTHON", "LC_", "LANG")
_ROOT = Path(__file__).parents[2]
_REQUEST = 1 << 20  # bytes
_ROOM = 1 << 14  # bytes for arguments and for the environment, as /proc shows them


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """What commands are forked from: one process for all that are alike in this."""

    python: str = sys.executable
    user: int | None = None  # uid and gid that it runs as, where that is another account
    group: int | None = None
    variables: tuple[tuple[str, str], ...] = ()  # those that an interpreter reads only when it starts

    def with_variables(self, env: Mapping[str, str]) -> Interpreter:
        return Interpreter(python=self.python, user=self.user, group=self.group, variables=_for_interpreter(env))

    def popen_options(self) -> dict[str, Any]:
        return {} if self.user is None else {"user": self.user, "group": self.group, "extra_groups": []}


OWN = Interpreter()


def run(
    words: Sequence[str], *, env: Mapping[str, str], timeout: float, cwd: Path | str | None = None,
    input: str | None = None, interpreter: Interpreter = OWN, **options: Any,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """As `subprocess.run` with `text` and `capture_output`; options beyond these get a new interpreter."""
    if options or not _is_forked(interpreter, env):
        return subprocess.run(
            [interpreter.python, "-m", "runyard", *words], env=env, timeout=timeout, cwd=cwd, input=input,
            capture_output=True, text=True, **interpreter.popen_options(), **options,
        )  # fmt: skip
    with contextlib.ExitStack() as files:
        streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write((input or "").encode())
        streams[0].seek(0)
        process = _server(interpreter.with_variables(env)).start(words, env, str(cwd or os.getcwd()), streams)
        code = _end_in_time(process, timeout)
        return subprocess.CompletedProcess(process.args, code, *map(_contents, streams[1:]))


def start(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path | str, log: IO[bytes], interpreter: Interpreter = OWN
) -> Started:
    """As `subprocess.Popen` without input, and with all output in `log`. SIGABRT has it write where each thread is."""
    if _is_forked(interpreter, env):
        with open(os.devnull, "rb") as nothing:
            server = _server(interpreter.with_variables(env))
            return server.start(words, env, str(cwd), [nothing, log, log], faults=True)
    command = [interpreter.python, "-X", "faulthandler", "-m", "runyard", *words]
    options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **interpreter.popen_options()}
    return subprocess.Popen(command, env=env, cwd=cwd, **options)


def _is_forked(interpreter: Interpreter, env: Mapping[str, str]) -> bool:
    """Our own account's commands have our variables nearly always: one that has others is not worth a server."""
    return interpreter != OWN or _for_interpreter(env) == _for_interpreter(os.environ)


def _for_interpreter(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in env.items() if name.startswith(_AT_START)))


def _end_in_time(process: Process, timeout: float) -> int:
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def _contents(stream: Any) -> str:
    stream.seek(0)
    return str(stream.read().decode())


class Process:
    """One that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], connection: socket.socket) -> None:
        self.args = ["runyard", *words]
        self.returncode: int | None = None
        self._connection = connection
        self._answers = connection.makefile("r")
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._collect()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._collect()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _collect(self) -> None:
        self.returncode = int(self._answers.readline())
        self._answers.close()
        self._connection.close()


Started = Process | subprocess.Popen[bytes]


@functools.cache
def _server(interpreter: Interpreter) -> CommandServer:
    return CommandServer(interpreter)


class CommandServer:
    """The process with everything imported. It ends with the test process, whose end closes its standard input."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rest = {name: value for name, value in os.environ.items() if not name.startswith(_AT_START)}
        with theirs:
            self._process = subprocess.Popen(
                [interpreter.python, "-m", "tests.labs.commands", "-" * _ROOM],
                env={**rest, **dict(interpreter.variables), "ROOM": "-" * _ROOM}, cwd=_ROOT, stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL, **interpreter.popen_options(),
            )  # fmt: skip
        atexit.register(self._close)

    def start(
        self, words: Sequence[str], env: Mapping[str, str], cwd: str, streams: Sequence[IO[bytes]], faults: bool = False
    ) -> Process:
        request = {"words": [*words], "env": dict(env), "cwd": cwd, "faults": faults}
        ours, theirs = socket.socketpair()
        with theirs:
            passed = [theirs.fileno(), *(stream.fileno() for stream in streams)]
            socket.send_fds(self._requests, [json.dumps(request).encode()], passed)
        return Process(words, ours)

    def _close(self) -> None:
        self._requests.close()
        self._process.wait(60)


# In the server


def serve(requests: socket.socket) -> None:
    """Until nobody can ask any more. Each request is one command."""
    _import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes that answer for a command need not be waited for
    while True:
        request, passed, _, _ = socket.recv_fds(requests, _REQUEST, 4)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            _answer(json.loads(request), *passed)
            os._exit(0)
        for descriptor in passed:
            os.close(descriptor)


def _import_everything() -> None:
    import runyard.app
    import runyard.cli

    for package in (runyard.app, runyard.cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page of what it shares with this process


def _answer(request: dict[str, Any], descriptor: int, *streams: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection = socket.socket(fileno=descriptor)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(request, streams)
    for stream in streams:  # the command's end is to be the end of its output
        os.close(stream)
    connection.sendall(b"%d\n" % pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.sendall(b"%d\n" % code)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    """What was asked for; it does not return."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = ["runyard", *request["words"]]
    os.environ.clear()
    os.environ.update(request["env"])
    _show([sys.executable, "-m", *sys.argv], request["env"])
    os.chdir(request["cwd"])
    time.tzset()
    tempfile.tempdir = None
    if request["faults"]:
        faulthandler.enable()
    os._exit(_call())


def _show(words: Sequence[str], env: Mapping[str, str]) -> None:
    """In /proc, where tests look for the processes of a home. The kernel reads both from where it laid them at execve:
    the room there comes from long words that mean nothing else."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments, end_of_arguments, variables, end_of_variables = map(int, fields[45:49])
    _lay(arguments, end_of_arguments, words)
    _lay(variables, end_of_variables, [f"{name}={value}" for name, value in env.items()])


def _lay(start: int, end: int, texts: Sequence[str]) -> None:
    data = b"".join(os.fsencode(text) + b"\0" for text in texts)[: end - start - 1]
    ctypes.memmove(start, data.ljust(end - start, b"\0"), end - start)


def _call() -> int:
    """The exit code, after all that Python does at its end."""
    from runyard.cli.main import main

    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # threads that are no daemons are waited for
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
