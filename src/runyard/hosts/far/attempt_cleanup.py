"""Delete directories of attempts whose end the yard has settled, at once or after a retention time."""

import errno
import json
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from . import files
from .cache import Beat, CacheFiles, names

STAYS: Dict[str, Tuple[bytes, ...]] = {  # what each word leaves there; `all` leaves everything
    "none": (),
    "unsaved": (b"work",),
    "outputs": (b"outputs", b"work"),
}
LOOK_S = 600.0  # between two looks at what stays for a while only

Json = Dict[str, Any]

_NAME = re.compile(r"(\d+)-a(\d+)")


def leave(cache: CacheFiles, runs: bytes, leaving: Dict[str, List], beat: Beat) -> None:  # type: ignore[type-arg]
    """`leaving`: by the attempt's name, what is kept, and for how many seconds (null: for ever)."""
    for name, (what, seconds) in leaving.items():
        beat()
        _leave(cache, runs, name, what, seconds, beat)
    _expire(cache, runs, beat)


def _leave(cache: CacheFiles, runs: bytes, name: str, what: str, seconds: Optional[int], beat: Beat) -> None:
    """What could not be deleted is noted as due, and its retention starts when it was; the next call tries again."""
    done = what == "all" or _strip(_home(runs, name), what, beat)
    if not done:
        _note(cache, name, {"for": 0, "then": [what, seconds]})
    elif seconds is not None or what == "all":
        _note(cache, name, {"for": seconds, "then": ["none", None]})
    else:
        files.remove(_entry(cache, name))


def is_kept(cache: CacheFiles, name: str) -> bool:
    return os.path.exists(_entry(cache, name))


def _strip(home: bytes, what: str, beat: Beat) -> bool:
    """False if something could not be deleted, because a process still writes there. The spec is deleted first: a late
    runner finds nothing to run, whether or not another trace of the run is left."""
    try:
        for name in sorted(names(home), key=lambda name: name != b"spec.json"):
            beat()
            path = os.path.join(home, name)
            if name not in STAYS[what] or not files.has_entries(path):
                files.remove_tree(path)
        if not names(home) and os.path.isdir(home):
            os.rmdir(home)
    except OSError:
        return False
    return True


def _note(cache: CacheFiles, name: str, plan: Json) -> None:
    """Its age by the file system's own clock."""
    files.make_directory(cache.root)
    files.make_directory(os.path.join(cache.root, b"kept"))
    files.write(_entry(cache, name), json.dumps(plan).encode())


def _expire(cache: CacheFiles, runs: bytes, beat: Beat) -> None:
    folder = os.path.join(cache.root, b"kept")
    looked = os.path.join(folder, b"looked")
    if not os.path.isdir(folder) or (os.path.exists(looked) and files.age(looked) < LOOK_S):
        return
    files.write(looked, b"")
    for entry in names(folder):
        beat()
        name = entry.decode("ascii", "replace")[: -len(".json")]
        plan = _due(os.path.join(folder, entry)) if _NAME.fullmatch(name) else None
        if plan is not None:
            _leave(cache, runs, name, plan[0], plan[1], beat)


def _due(entry: bytes) -> Optional[List[Any]]:
    """What is to be kept now, and for how long; None: nothing changes yet."""
    try:
        plan = json.loads(files.fetch(entry).decode())
        is_over = plan["for"] is not None and files.age(entry) >= plan["for"]
        return list(plan["then"]) if is_over else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _home(runs: bytes, name: str) -> bytes:
    found = _NAME.fullmatch(name)
    if found is None:
        raise OSError(errno.EINVAL, "not the name of an attempt", name)
    return os.path.join(runs, found.group(1).encode(), b"a" + found.group(2).encode())


def _entry(cache: CacheFiles, name: str) -> bytes:
    return os.path.join(cache.root, b"kept", name.encode() + b".json")
