"""Starts a program without a copy of this process.

A fork copies the page tables, and after it each page that either side writes to: most of what a short run costs its
runner. The kernel can lend the memory instead: a child of clone(CLONE_VM | CLONE_VFORK) has it until its execve, and
its parent sleeps so long. No Python may run in such a child. So what it has to do is laid out beforehand as a chain of
contexts (makecontext): calls of the C library, each of which goes over to the next one when it returns.

A chain decides nothing. Whatever may fail before execve is done by the parent, or left to a fork. And a runner that
sleeps handles no signal: while execve hangs, as on a dead file server, only its agent can kill it.
"""

import ctypes
import errno
import os
import signal
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import kernel, process

_CLONE_VM, _CLONE_VFORK = 0x100, 0x4000
_ROOM = 8192  # for what a context keeps behind its first fields, on any processor
_STACK = 32768


class _Context(ctypes.Structure):
    """The beginning of a ucontext_t, which is the same on all processors that we know of; a trial tells."""

    _fields_ = [
        ("flags", ctypes.c_ulong),
        ("link", ctypes.c_void_p),
        ("stack", ctypes.c_void_p),
        ("stack_flags", ctypes.c_int),
        ("stack_size", ctypes.c_size_t),
        ("rest", ctypes.c_char * _ROOM),
    ]


class _Step(NamedTuple):
    context: _Context
    stack: Any

    @property
    def address(self) -> int:
        return ctypes.addressof(self.context)


class Spawner:
    """Programs that it starts have the signal mask of the moment in which it was made."""

    def __init__(self) -> None:
        """Raises AttributeError where the C library has no contexts."""
        self._functions = {
            name: ctypes.cast(getattr(kernel.libc, name), ctypes.c_void_p)
            for name in ("prctl", "setsid", "dup2", "execve", "_exit", "setcontext")
        }
        self._clone = kernel.libc.clone
        self._clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        self._fresh = _Context()
        kernel.libc.getcontext(ctypes.byref(self._fresh))
        self._stack = ctypes.create_string_buffer(_STACK)
        self._steps: List[_Step] = []

    def spawn(
        self, program: bytes, argv: Sequence[bytes], env: Dict[bytes, bytes], stdout: int, stderr: int
    ) -> Tuple[int, int]:
        """The number of the process, and why execve failed in it, or 0. As leader of a session, killed when we die.
        Raises OSError when there can be no process, ValueError for what no program can be given."""
        _check(argv, env)
        words, variables = _array(argv), _array([name + b"=" + value for name, value in env.items()])
        calls: List[Tuple[Any, ...]] = [
            ("prctl", kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0),
            ("setsid",),
            ("dup2", stdout, 1),
            ("dup2", stderr, 2),
            ("execve", ctypes.c_char_p(program), words, variables),
            ("_exit", process.NOT_STARTED),
        ]
        return self._start(self._lay_out(calls))

    def _start(self, first: int) -> Tuple[int, int]:
        """The child has our memory, so its `errno` is ours."""
        top = (ctypes.addressof(self._stack) + _STACK) & ~0xFF
        ctypes.set_errno(0)
        pid = self._clone(self._functions["setcontext"], top, _CLONE_VM | _CLONE_VFORK | signal.SIGCHLD, first)
        number = ctypes.get_errno()
        if pid < 0:
            raise OSError(number, os.strerror(number))
        return pid, number

    def _lay_out(self, calls: Sequence[Tuple[Any, ...]]) -> int:
        """Anew each time: a chain that was gone through is used up. Returns where it begins."""
        while len(self._steps) < len(calls):
            self._steps.append(_Step(_Context(), ctypes.create_string_buffer(_STACK)))
        following = None
        for number, (name, *arguments) in enumerate(reversed(calls)):
            self._fill(self._steps[number], following, name, arguments)
            following = self._steps[number].address
        assert following is not None
        return following

    def _fill(self, step: _Step, following: Optional[int], name: str, arguments: List[Any]) -> None:
        context = step.context
        ctypes.memmove(step.address, ctypes.addressof(self._fresh), ctypes.sizeof(_Context))
        context.link, context.stack, context.stack_size = following, ctypes.addressof(step.stack), _STACK
        values = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
        kernel.libc.makecontext(ctypes.byref(context), self._functions[name], len(values), *values)


def make() -> Optional[Spawner]:
    """None where it does not work, which is tried in a process of its own: that may be a crash."""
    trial = os.fork()
    if trial == 0:
        code = 1
        try:
            code = 0 if _works() else 1
        finally:
            os._exit(code)
    return Spawner() if os.waitpid(trial, 0)[1] == 0 else None


def _works() -> bool:
    """Twice, because a chain leaves traces."""
    spawner = Spawner()
    for _ in range(2):
        pid, number = spawner.spawn(b"", [b""], {}, 1, 2)
        if number != errno.ENOENT or os.waitpid(pid, 0) != (pid, process.NOT_STARTED << 8):
            return False
    return True


def _check(argv: Sequence[bytes], env: Dict[bytes, bytes]) -> None:
    if any(b"\0" in text for texts in (argv, env, env.values()) for text in texts):
        raise ValueError("a zero byte")
    if any(not name or b"=" in name for name in env):
        raise ValueError("a wrong name of a variable")


def _array(texts: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
