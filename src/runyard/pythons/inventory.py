"""Existing environments: which are complete, which attempts need them, and which are deleted first."""

import contextlib
import fcntl
import json
import os
import re
import shutil
from typing import Any, Dict, List, Optional, Set, Tuple

from . import locks

CURRENT = "current"
TAIL_BYTES = 8000
_LOGIN = re.compile(r"://[^/@\s]+@")


def current(place: str) -> Optional[str]:
    """The successful build, unless its base interpreter was removed."""
    link = os.path.join(place, CURRENT)
    try:
        prefix = os.path.join(place, os.path.basename(os.readlink(link)))
    except OSError:
        return None
    if not os.access(os.path.join(prefix, "bin", "python"), os.X_OK):
        return None
    with contextlib.suppress(OSError):
        os.utime(place)  # it was used
    return prefix


def succeed(place: str, build: str) -> None:
    """Make this build the current one. Without locks, a second build of the same at the same time does no harm."""
    size = _size(os.path.join(place, build))
    _write(os.path.join(place, build + ".json"), {"size": size})
    draft = os.path.join(place, build + ".tmp")
    os.symlink(build, draft)
    os.rename(draft, os.path.join(place, CURRENT))


def fail(place: str, build: str, text: str) -> None:
    shutil.rmtree(os.path.join(place, build), ignore_errors=True)
    _write(os.path.join(place, build + ".json"), {"failed": text})


def failure(place: str, build: Optional[str]) -> Optional[str]:
    """Of exactly this build."""
    told = _read(os.path.join(place, os.path.basename(build) + ".json")) if build else {}
    text = told.get("failed")
    return None if text is None else str(text)


def pin(place: str, agent: str, attempts: List[str]) -> None:
    directory = os.path.join(place, "pins")
    os.makedirs(directory, 0o700, exist_ok=True)
    for attempt in attempts:
        with open(os.path.join(directory, _pin(agent, attempt)), "a"):
            pass


def clear(place: str, build: str = "") -> None:
    """Delete files of killed and failed builds. Only with the lock: then no other builder is running."""
    for name in os.listdir(place):
        if name in ("lock", "pins") or (build and name.startswith(build)):
            continue
        path = os.path.join(place, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)


def over(root: str, agent: str, living: List[str]) -> List[str]:
    """The pins of this agent's attempts that are over, as long as `living` are all that it has. Later pins are not
    included: the agent may have more attempts by the time the pins are deleted."""
    alive, ours = {_pin(agent, attempt) for attempt in living}, _pin(agent, "")
    found = []
    for name in os.listdir(root):
        pins = os.path.join(name, "pins")
        found += [os.path.join(pins, pin) for pin in _names(os.path.join(root, pins)) - alive if pin.startswith(ours)]
    return found


def tidy(root: str, over: List[str], limit: int) -> None:
    """Delete these pins; then the least recently used environments without pins."""
    with locks.held(os.path.join(root, "lock"), fcntl.LOCK_EX):
        for pin in over:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(root, pin))
        found = [_shelf(os.path.join(root, name)) for name in os.listdir(root) if name != "lock"]
        pinned = {place for _, place, _ in found if _names(os.path.join(place, "pins"))}
        total = sum(size for _, _, size in found)
        aside = []
        for _, place, size in sorted(found):
            if total <= limit:
                break
            if place not in pinned and size:
                total -= size
                aside.append(place)
        for place in aside:
            clear(place)


def tail(path: str) -> List[str]:
    """The last lines of a log, for users, without passwords in the address of an index."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
            return [_LOGIN.sub("://", line.strip()) for line in lines]
    except OSError:
        return []


def _names(directory: str) -> Set[str]:
    try:
        return set(os.listdir(directory))
    except OSError:
        return set()


def _pin(agent: str, attempt: str) -> str:
    return "%s.%s" % (agent.replace("/", "_").replace(".", "_"), attempt.replace("/", "_"))


def _shelf(place: str) -> Tuple[float, str, int]:
    """When it was used last, where it is, and its size; 0 if it is incomplete."""
    prefix = os.path.realpath(os.path.join(place, CURRENT))
    try:
        used = os.stat(place).st_mtime
    except OSError:
        return 0.0, place, 0
    return used, place, int(_read(prefix + ".json").get("size", 0))


def _size(directory: str) -> int:
    total = 0
    for parent, _, inside in os.walk(directory):
        for name in inside:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _write(path: str, value: Dict[str, Any]) -> None:
    with open(path + ".tmp", "w") as file:
        json.dump(value, file)
    os.rename(path + ".tmp", path)


def _read(path: str) -> Dict[str, Any]:
    try:
        with open(path) as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
