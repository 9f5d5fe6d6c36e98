"""Find the environments that attempts ask for, and have those built that are not there.

A build is a process of its own, which goes on when whoever asked is gone: asking again tells how far it is.
"""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import condas, interpreters, locks, shelves

Json = Dict[str, Any]

LAST_LINE = 160  # characters


def look(root: str, agent: str, living: List[str], limit: int, asked: List[Json]) -> List[Json]:
    """For each that is asked for its prefix, or the build that is under way, or why there is none.

    `living` names all attempts that this agent has; `limit` is how many bytes of environments are kept that nobody
    needs. With the name of a `build` that was told before, its failure is told; else it is tried once more.
    """
    os.makedirs(root, 0o700, exist_ok=True)
    return [_look(root, agent, living, limit, ask) for ask in asked]


def _look(root: str, agent: str, living: List[str], limit: int, ask: Json) -> Json:
    environ = _environ(ask)
    try:
        if ask["kind"] == "there":
            return {"prefix": condas.find(ask["named"], ask["conda_root"], environ)}
        version = ask["python"] or interpreters.usual_version(environ)
    except condas.Missing as error:
        return {"failed": str(error)}
    place = os.path.join(root, _digest(ask, version))
    os.makedirs(place, 0o700, exist_ok=True)
    with locks.held(os.path.join(root, "lock"), fcntl.LOCK_SH):
        shelves.pin(place, agent, ask["attempts"])
    prefix = shelves.current(place)
    if prefix is not None:
        return {"prefix": prefix}
    return _build(root, place, agent, living, limit, dict(ask, python=version))


def _build(root: str, place: str, agent: str, living: List[str], limit: int, ask: Json) -> Json:
    lock = os.path.join(place, "lock")
    descriptor = locks.take(lock)
    if descriptor is None:
        build = _read(lock)
        return {"build": build, "told": _last_line(os.path.join(place, build + ".log"))}
    try:
        prefix, failure = shelves.current(place), shelves.failure(place, ask.get("build"))
        if prefix is not None:
            return {"prefix": prefix}
        if failure is not None:
            return {"failed": failure}
        shelves.tidy(root, agent, living, limit)
        shelves.clear(place)
        return {"build": _start(place, descriptor, ask), "told": ""}
    finally:
        os.close(descriptor)


def _start(place: str, descriptor: int, ask: Json) -> str:
    """It keeps the lock for as long as it lives, with its name in it."""
    build = os.urandom(6).hex()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, build.encode(), 0)
    with open(os.path.join(place, build + ".log"), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-E", "-s", os.path.dirname(os.path.abspath(__file__)), place, build],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=_environ(ask), cwd=place, start_new_session=True,
            pass_fds=[descriptor],
        )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(ask).encode())
        process.stdin.close()
    except BrokenPipeError:  # it died at once, and will be found so
        pass
    _builders.append(process)
    return build


_builders: List["subprocess.Popen[bytes]"] = []  # those that end while we live are waited for when they are asked for


def _environ(ask: Json) -> Dict[str, str]:
    """That of a login at the site, or all that is given; with the interpreter's own variables out of it."""
    _builders[:] = [process for process in _builders if process.poll() is None]
    environ = dict(os.environ) if ask["inherit"] else {}
    environ.update(ask["env"])
    for name in ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"):
        environ.pop(name, None)
    return environ


def _digest(ask: Json, version: str) -> str:
    made_of = [ask["kind"], ask["explicit"], ask["text"], version, sys.platform, platform.machine(), _libc()]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return os.path.basename(file.read())
    except OSError:
        return ""


def _last_line(path: str) -> str:
    lines = shelves.tail(path)
    found: Optional[str] = next((line for line in reversed(lines) if line), None)
    return (found or "")[:LAST_LINE]
