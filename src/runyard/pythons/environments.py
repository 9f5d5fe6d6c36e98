"""Find the environments that attempts request, and build the missing ones.

A build is a separate process, which continues without the caller: another call returns its progress.
"""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import conda, interpreters, inventory, locks

Json = Dict[str, Any]

LAST_LINE = 160  # characters


def look(program: str, root: str, agent: str, living: List[str], limit: int, asked: List[Json]) -> List[Json]:
    """For each requested environment its prefix, or the running build, or why there is none.

    `program` is the directory of this package, from which builders are started. `living` names all attempts that this
    agent has; `limit` is how many bytes of unused environments are kept. With the name of a
    `build` that was returned before, its failure is returned; else it is tried once more.
    """
    os.makedirs(root, 0o700, exist_ok=True)
    answers = []
    for ask in asked:
        found = _look(root, agent, ask)
        answers.append(found if found is not None else _build(program, root, agent, living, limit, ask))
    return answers


def _look(root: str, agent: str, ask: Json) -> Optional[Json]:
    """None: it must be built. Facts found for that are added to the request."""
    environ = _environ(ask)
    try:
        if ask["kind"] == "there":
            return {"prefix": conda.find(ask["named"], ask["conda_root"], environ)}
        ask["python"] = ask["python"] or interpreters.usual_version(environ)
    except conda.Missing as error:
        return {"failed": str(error)}
    place = ask["place"] = os.path.join(root, _digest(ask))
    os.makedirs(place, 0o700, exist_ok=True)
    with locks.held(os.path.join(root, "lock"), fcntl.LOCK_SH):
        inventory.pin(place, agent, ask["attempts"])
    prefix = inventory.current(place)
    return None if prefix is None else {"prefix": prefix}


def _build(program: str, root: str, agent: str, living: List[str], limit: int, ask: Json) -> Json:
    """Start a build, unless one is running or was just tried."""
    place, before = ask["place"], ask["build"]
    lock = os.path.join(place, "lock")
    descriptor = locks.take(lock)
    if descriptor is None:
        build = _read(lock)
        return {"build": build, "told": _last_line(place, build)}
    try:
        prefix, failure = inventory.current(place), inventory.failure(place, before)
        if prefix is not None:
            return {"prefix": prefix}
        if failure is not None:
            return {"failed": failure}
        told = _last_line(place, before) if before else ""
        ask["tidy"] = [root, inventory.over(root, agent, living), limit]
        return {"build": _start(program, place, descriptor, ask), "told": told}
    finally:
        os.close(descriptor)


def _start(program: str, place: str, descriptor: int, ask: Json) -> str:
    """It holds the lock, which contains its name, for as long as it lives."""
    build = os.urandom(6).hex()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, build.encode(), 0)
    with open(os.path.join(place, build + ".log"), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-E", "-s", program, place, build],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=_environ(ask), cwd=place, start_new_session=True,
            pass_fds=[descriptor],
        )  # fmt: skip
    process.communicate(json.dumps(ask).encode())  # it leaves a detached child behind
    return build


def _environ(ask: Json) -> Dict[str, str]:
    """That of a login at the site, or all that is given; with the interpreter's own variables out of it."""
    environ = dict(os.environ) if ask["inherit"] else {}
    environ.update(ask["env"])
    for name in ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"):
        environ.pop(name, None)
    return environ


def _digest(ask: Json) -> str:
    made_of = [ask["kind"], ask["explicit"], ask["text"], ask["python"], sys.platform, platform.machine(), _libc()]
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


def _last_line(place: str, build: str) -> str:
    lines = inventory.tail(os.path.join(place, os.path.basename(build) + ".log"))
    return next((line for line in reversed(lines) if line), "")[:LAST_LINE]
