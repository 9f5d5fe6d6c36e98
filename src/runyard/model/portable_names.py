"""Names that are valid in every file system, including those of Windows servers.

They need no state: a name that is invalid, or could equal another without regard to case, gets a digest of the
original. So a name never depends on other names, and different originals have different names.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST = 100  # characters of a generated name
LONGEST_PART = 200  # of a name from outside
MARK = "@"  # before a digest

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?", re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9._=,+-]")
_WORD = re.compile(r"[a-z_](?:[a-z0-9_.-]*[a-z0-9_])?")  # does not look like a number
_READ_OTHERWISE = frozenset({"true", "false", "null", "nan", "inf"})
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_REFUSED = re.compile(r'[\x00-\x1f\x7f-\x9f:*?"<>|\\\ud800-\udfff]')


def configuration(params: Mapping[str, Any], name: str) -> str:
    """The name of a configuration: `lr=0.1,width=64`. Without parameters the run's name."""
    if not params:
        return _named(name) if name else "default"
    words = {key: _word(value) for key, value in sorted(params.items())}
    text = ",".join(f"{key}={_shown(params[key]) if word is None else word}" for key, word in words.items())
    is_plain = all(word is not None and _WORD.fullmatch(key) for key, word in words.items())
    return text if is_plain and len(text) <= LONGEST else _with_digest(text, params)


def _named(name: str) -> str:
    is_plain = _NAME.fullmatch(name) and len(name) <= LONGEST and not _RESERVED.fullmatch(name)
    return name if is_plain else _with_digest(name, name)


def project(name: str) -> str:
    """Unchanged: without regard to case two projects may share a directory, because runs have numbers."""
    return _with_digest(name, name) if name.endswith(".") or _RESERVED.fullmatch(name) else name


def files(paths: Iterable[str]) -> dict[str, str]:
    """For each relative path a portable one, which is usually the same."""
    taken: dict[tuple[str, str], str] = {}
    return {path: _placed(path, taken) for path in sorted(paths)}


def _placed(path: str, taken: dict[tuple[str, str], str]) -> str:
    """`taken`: names used per directory, without regard to case."""
    folder = ""
    for part in path.split("/"):
        name = _safe_part(part)
        if taken.setdefault((folder, _same(name)), part) != part:
            name = _marked(name, part)
        folder = f"{folder}/{name}" if folder else name
    return folder


def _same(name: str) -> str:
    """Equal for names that some file systems cannot distinguish."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _safe_part(part: str) -> str:
    name = _REFUSED.sub("_", part)
    too_long = len(name.encode()) > LONGEST_PART
    if name == part and not too_long and not name.endswith((".", " ")) and not _RESERVED.fullmatch(name):
        return name
    while len(name.encode()) > LONGEST_PART:
        name = name[:-1]
    return _marked(name, part)


def _marked(name: str, part: str) -> str:
    """Keeps the suffix, by which programs recognize files."""
    stem, dot, ending = name.rpartition(".")
    if not (stem and ending.isascii() and ending.isalnum() and len(ending) <= 10):
        stem, dot, ending = name.rstrip(". "), "", ""
    return f"{_unreserved(stem)}{MARK}{_digest(part)}{dot}{ending}"


def _unreserved(stem: str) -> str:
    """Windows looks at what is before the first dot."""
    return stem.replace(".", "_") if _RESERVED.fullmatch(stem) else stem


def _word(value: Any) -> str | None:
    """An unambiguous text of a value; None if it needs a digest."""
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and value not in _READ_OTHERWISE else None
    if isinstance(value, (list, dict)) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return json.dumps(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _with_digest(text: str, meant: Any) -> str:
    readable = _ODD.sub("_", text)[: LONGEST - 13].strip("._")
    return f"{_unreserved(readable)}{MARK}{_digest(meant)}"


def _digest(meant: Any) -> str:
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()[:12]
