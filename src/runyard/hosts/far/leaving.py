"""What goes of an attempt whose end the yard has settled, at once or after a while."""

import errno
import json
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from . import files
from .stock import Beat, Stock, names

STAYS: Dict[str, Tuple[bytes, ...]] = {  # what each word leaves there; `all` leaves everything
    "none": (),
    "unsaved": (b"work",),
    "outputs": (b"outputs", b"work"),
}
LOOK_S = 600.0  # between two looks at what stays for a while only

Json = Dict[str, Any]

_NAME = re.compile(r"(\d+)-a(\d+)")


def leave(stock: Stock, runs: bytes, leaving: Dict[str, List], beat: Beat) -> None:  # type: ignore[type-arg]
    """`leaving`: by the attempt's name, what stays, and for how many seconds (null: for ever)."""
    for name, (what, seconds) in leaving.items():
        beat()
        _leave(stock, runs, name, what, seconds, beat)
    _expire(stock, runs, beat)


def _leave(stock: Stock, runs: bytes, name: str, what: str, seconds: Optional[int], beat: Beat) -> None:
    """What could not go is to go with the next look, and until then nothing that stays longer."""
    done = what == "all" or _strip(_home(runs, name), what, beat)
    if not done:
        _note(stock, name, {"for": 0, "then": [what, seconds]})
    elif seconds is not None or what == "all":
        _note(stock, name, {"for": seconds, "then": ["none", None]})
    else:
        files.remove(_entry(stock, name))


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


def _note(stock: Stock, name: str, plan: Json) -> None:
    """How long ago it was written, the file system's own clock says."""
    files.make_directory(stock.root)
    files.make_directory(os.path.join(stock.root, b"kept"))
    files.write(_entry(stock, name), json.dumps(plan).encode())


def _expire(stock: Stock, runs: bytes, beat: Beat) -> None:
    folder = os.path.join(stock.root, b"kept")
    looked = os.path.join(folder, b"looked")
    if not os.path.isdir(folder) or (os.path.exists(looked) and files.age(looked) < LOOK_S):
        return
    files.write(looked, b"")
    for entry in names(folder):
        beat()
        name = entry.decode("ascii", "replace")[: -len(".json")]
        plan = _due(os.path.join(folder, entry)) if _NAME.fullmatch(name) else None
        if plan is not None:
            _leave(stock, runs, name, plan[0], plan[1], beat)


def _due(entry: bytes) -> Optional[List[Any]]:
    """What is to stay now, and for how long; None: nothing changes yet."""
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


def _entry(stock: Stock, name: str) -> bytes:
    return os.path.join(stock.root, b"kept", name.encode() + b".json")
