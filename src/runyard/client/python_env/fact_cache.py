"""A cache of facts about interpreters, valid between submits as long as the files they came from are the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def page(cache: Path, kind: str, name: str) -> Path:
    return cache / f"{kind}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"


def identity(paths: Iterable[str]) -> list[Any]:
    """Changes when one of these files is replaced, or an entry is added to or removed from these directories."""
    found: list[Any] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            found.append(None)
        else:
            found.append([status.st_ino, status.st_mtime_ns, status.st_ctime_ns])
    return found


def read(path: Path, seen: Sequence[Any]) -> dict[str, Any] | None:
    """None if there is no entry for exactly this."""
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(noted, dict) or noted.get("seen") != list(seen) or not isinstance(noted.get("told"), dict):
        return None
    told: dict[str, Any] = noted["told"]
    return told


def write(path: Path, seen: Sequence[Any], told: dict[str, Any]) -> None:
    """If that is not possible, the facts are determined again the next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump({"seen": list(seen), "told": told}, file)
        os.replace(file.name, path)
