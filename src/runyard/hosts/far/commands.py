"""Run a command, and kill it after its timeout."""

import errno
import os
import signal
import subprocess
from typing import List, Optional, Tuple

_BUSY = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # of the machine, and not of the program


def run(argv: List[bytes], given: bytes, timeout: float) -> Tuple[Optional[int], bytes, bytes]:
    """Code, stdout and stderr. After `timeout` seconds the command and all in its session are killed: None."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        code = None if error.errno in _BUSY else 127
        return code, b"", b"%s: %s" % (argv[0], str(error.strerror).encode())
    with process:
        try:
            stdout, stderr = process.communicate(given, timeout)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return None, b"", b"%s: no answer within %g seconds" % (argv[0], timeout)
    return process.returncode, stdout, stderr


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Its pipes are closed unread: a process that left its session may keep them open for ever."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for pipe in (process.stdin, process.stdout, process.stderr):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass
