"""What goes of an attempt whose end the yard has settled, at once or after a while."""

import errno
import json
import os
import re
import time
from typing import Dict, List, Optional, Tuple

from . import files
from .stock import Beat, Stock, names

STAYS: Dict[str, Tuple[bytes, ...]] = {  # what each word leaves there; `all` leaves everything
    "none": (),
    "unsaved": (b"work",),
    "outputs": (b"outputs", b"work"),
}
LOOK_S = 600.0  # between two looks at what stays for a while only

_NAME = re.compile(r"(\d+)-a(\d+)")


def leave(stock: Stock, runs: bytes, leaving: Dict[str, List], beat: Beat) -> None:  # type: ignore[type-arg]
    """`leaving`: by the attempt's name, what stays, and for how many seconds (null: for ever)."""
    for name, (what, seconds) in leaving.items():
        beat()
        done = what == "all" or _strip(_home(runs, name), what, beat)
        if not done or seconds is not None or what == "all":
            _note(stock, name, 0 if not done else seconds)
    _expire(stock, runs, beat)


def is_kept(stock: Stock, name: str) -> bool:
    return os.path.exists(_entry(stock, name))


def _strip(home: bytes, what: str, beat: Beat) -> bool:
    """False when something could not be removed, because somebody still writes there. The spec goes first: whoever
    comes late finds nothing to run, whether or not there is a sign left that it has run."""
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


def _note(stock: Stock, name: str, seconds: Optional[int]) -> None:
    """How long ago it was written, the file system's own clock says."""
    files.make_directory(stock.root)
    files.make_directory(os.path.join(stock.root, b"kept"))
    files.write(_entry(stock, name), json.dumps({"for": seconds}).encode())


def _expire(stock: Stock, runs: bytes, beat: Beat) -> None:
    folder = os.path.join(stock.root, b"kept")
    looked = os.path.join(folder, b"looked")
    if not os.path.isdir(folder) or (os.path.exists(looked) and _age(looked) < LOOK_S):
        return
    files.write(looked, b"")
    for entry in names(folder):
        beat()
        name = entry.decode("ascii", "replace")[: -len(".json")]
        if _NAME.fullmatch(name) and _is_over(os.path.join(folder, entry)) and _strip(_home(runs, name), "none", beat):
            files.remove(os.path.join(folder, entry))


def _is_over(entry: bytes) -> bool:
    try:
        seconds = json.loads(files.fetch(entry).decode())["for"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return seconds is not None and _age(entry) >= seconds


def _age(path: bytes) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _home(runs: bytes, name: str) -> bytes:
    found = _NAME.fullmatch(name)
    if found is None:
        raise OSError(errno.EINVAL, "not the name of an attempt", name)
    return os.path.join(runs, found.group(1).encode(), b"a" + found.group(2).encode())


def _entry(stock: Stock, name: str) -> bytes:
    return os.path.join(stock.root, b"kept", name.encode() + b".json")
