"""The start of the user's process, and a helpful error if that fails."""

import errno
import os
import select
import signal
from typing import TYPE_CHECKING, Dict, List, Optional

from . import kernel, process, setup, spec

if TYPE_CHECKING:
    from . import spawn

_PATH = b"PATH"
_DEFAULT_PATH = spec.DEFAULT_PATH

spawner: "Optional[spawn.Spawner]" = None  # a zygote's runners have one; for a single start it gains nothing


class Child:
    """The user's first process: leader of its own session and group."""

    def __init__(self, wanted: spec.Spec, stdout: int, stderr: int, cgroup: Optional[str]) -> None:
        self._spec, self._argv = wanted, setup.wrap(wanted.setup, wanted.argv, wanted.programs)
        self._trouble: Optional[int] = None  # a pipe, where it was forked
        self._error = 0  # of execve, where it was spawned
        self.pid = 0
        if cgroup is not None or not self._spawn(stdout, stderr):
            self._fork(stdout, stderr, cgroup)

    def _spawn(self, stdout: int, stderr: int) -> bool:
        """False if it needs a fork, to start it or to find out why it cannot be started."""
        wanted = self._spec
        if spawner is None or wanted.ignored or wanted.ends_itself:
            return False
        here = os.open(".", os.O_PATH)
        try:
            os.chdir(wanted.cwd)
            program = next(filter(_is_program, candidates(self._argv[0], wanted.env)))
            self.pid, self._error = spawner.spawn(program, self._argv, wanted.env, stdout, stderr)
            return True
        except (OSError, ValueError, StopIteration):
            return False
        finally:
            os.fchdir(here)
            os.close(here)

    def _fork(self, stdout: int, stderr: int, cgroup: Optional[str]) -> None:
        self._trouble, trouble = os.pipe()
        runner = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _become_program(self._spec, self._argv, stdout, stderr, cgroup, runner, trouble)
        os.close(trouble)

    @property
    def is_launched(self) -> bool:
        """Whether execve is over, one way or the other: the pipe's other end is closed then."""
        return self._trouble is None or bool(select.select([self._trouble], [], [], 0)[0])

    def failure(self) -> Optional[str]:
        """Why it could not be started, once it has ended. None when the program itself ran."""
        if self._trouble is None:
            return explain("exec", self._error, self._spec) if self._error else None
        told = os.read(self._trouble, 64)
        os.close(self._trouble)
        if not told:
            return None
        stage, number = told.decode().split()
        return explain(stage, int(number), self._spec)


def _become_program(
    wanted: spec.Spec, argv: List[bytes], stdout: int, stderr: int, cgroup: Optional[str], runner: int, trouble: int
) -> None:
    """Never returns. The pipe `trouble` is closed by a good execve; otherwise it reports what failed."""
    stage = "start"
    try:
        os.setsid()
        kernel.die_with_parent()
        if os.getppid() != runner:  # it died before that call: we would never be killed
            os._exit(process.NOT_STARTED)
        for number in wanted.ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if cgroup is not None:
            _enter(cgroup)
        stage = "cwd"
        os.chdir(wanted.cwd)
        stage = "exec"
        _execute(argv, wanted.env)
    except OSError as error:
        os.write(trouble, b"%s %d" % (stage.encode(), error.errno or 0))
    except ValueError:  # what no program can be given
        os.write(trouble, b"%s %d" % (stage.encode(), errno.EINVAL))
    finally:
        os._exit(process.NOT_STARTED)


def _enter(cgroup: str) -> None:
    """When this does not work the judge finds the group empty and measures instead."""
    try:
        with open(cgroup + "/cgroup.procs", "w") as file:
            file.write("0")
    except OSError:
        pass


def _execute(argv: List[bytes], env: Dict[bytes, bytes]) -> None:
    last = errno.ENOENT
    for program in candidates(argv[0], env):
        try:
            os.execve(program, argv, env)
        except OSError as error:
            # As shells do: a file that may not be executed is worth telling only when no later one can be.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                last = error.errno or last
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                break
    raise OSError(last, os.strerror(last))


def candidates(program: bytes, env: Dict[bytes, bytes]) -> List[bytes]:
    """Where to look for a program: its path, or its name in each directory of the run's own PATH."""
    if b"/" in program:
        return [program]
    return [os.path.join(place, program) for place in env.get(_PATH, _DEFAULT_PATH).split(b":")]


def _is_program(path: bytes) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)


def explain(stage: str, number: int, wanted: spec.Spec) -> str:
    if stage == "cwd":
        return _explain_directory(number, wanted.cwd)
    if stage == "exec":
        return _explain_program(number, wanted)
    return "could not start a process: " + os.strerror(number)


def _explain_directory(number: int, path: bytes) -> str:
    reasons = {
        errno.ENOENT: "no such working directory",
        errno.ENOTDIR: "the working directory is no directory",
        errno.EACCES: "the working directory may not be entered",
    }
    return "%s: %s" % (reasons.get(number, os.strerror(number)), shown(path))


def _explain_program(number: int, wanted: spec.Spec) -> str:
    program = shown(wanted.argv[0])
    found = _existing(wanted)
    if number == errno.ENOENT:
        return _explain_missing(program, wanted) if found is None else _explain_interpreter(program, found)
    if number == errno.EACCES and found is not None and os.path.isdir(found):
        return "not a program but a directory: " + program
    reasons = {
        errno.EACCES: "not executable: %s; allow it by chmod +x, or put its interpreter before it",
        errno.ENOEXEC: "not a program for this machine, and no #! line: %s; put its interpreter before it",
        errno.E2BIG: "arguments and environment of %s are too long together",
        errno.EINVAL: "a zero byte in the arguments of %s, or a wrong name in its environment",
    }
    return reasons[number] % program if number in reasons else "%s: %s" % (os.strerror(number), program)


def _explain_missing(program: str, wanted: spec.Spec) -> str:
    if b"/" in wanted.argv[0]:
        return "no such program: " + program
    if os.path.exists(os.path.join(wanted.cwd, wanted.argv[0])):
        return "no such program: {0}; for the file in the working directory write ./{0}".format(program)
    return "no such program: %s (PATH is %s)" % (program, shown(wanted.env.get(_PATH, _DEFAULT_PATH)))


def _explain_interpreter(program: str, found: bytes) -> str:
    """The file exists, but the kernel reports a missing file: the file's interpreter or loader."""
    try:
        with open(found, "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    if first.startswith(b"#!"):
        return "%s wants the interpreter %s, which is not here" % (program, shown(first[2:].strip()))
    return program + " was made for another system: the loader it wants is not here"


def _existing(wanted: spec.Spec) -> Optional[bytes]:
    places = (os.path.join(wanted.cwd, path) for path in candidates(wanted.argv[0], wanted.env))
    return next((path for path in places if os.path.exists(path)), None)


def shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")
