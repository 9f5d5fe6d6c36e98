"""Names that every file system takes, those of Windows servers too.

Nothing is remembered to make them: what cannot be written as it is, or could be taken for another name where capitals
do not count, gets a digest of what it stands for. So a name never depends on what else there is, and different things
have different names.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST = 100  # characters of a name that we make
LONGEST_PART = 200  # of a name that somebody else made
MARK = "@"  # before a digest

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?", re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9._=,+-]")
_WORD = re.compile(r"[a-z_](?:[a-z0-9_.-]*[a-z0-9_])?")  # cannot be taken for a number
_READ_OTHERWISE = frozenset({"true", "false", "null", "nan", "inf"})
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_REFUSED = re.compile(r'[\x00-\x1f\x7f-\x9f:*?"<>|\\\ud800-\udfff]')


def configuration(params: Mapping[str, Any], name: str) -> str:
    """What runs with the same parameters have in common: `lr=0.1,width=64`. Without parameters the run's name."""
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
    """As it is: where capitals do not count, two projects may share a folder, because runs have their numbers."""
    return _with_digest(name, name) if name.endswith(".") or _RESERVED.fullmatch(name) else name


def files(paths: Iterable[str]) -> dict[str, str]:
    """For each relative path the one under which it can be written anywhere: most often the same."""
    taken: dict[tuple[str, str], str] = {}
    return {path: _placed(path, taken) for path in sorted(paths)}


def _placed(path: str, taken: dict[tuple[str, str], str]) -> str:
    """`taken`: which part has a name in its folder, where capitals do not count."""
    folder = ""
    for part in path.split("/"):
        name = _safe_part(part)
        if taken.setdefault((folder, _same(name)), part) != part:
            name = _marked(name, part)
        folder = f"{folder}/{name}" if folder else name
    return folder


def _same(name: str) -> str:
    """Equal for names that some file system takes for the same."""
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
    """The ending stays, because programs know files by it."""
    stem, dot, ending = name.rpartition(".")
    if not (stem and ending.isascii() and ending.isalnum() and len(ending) <= 10):
        stem, dot, ending = name.rstrip(". "), "", ""
    return f"{_unreserved(stem)}{MARK}{_digest(part)}{dot}{ending}"


def _unreserved(stem: str) -> str:
    """Windows looks at what is before the first dot."""
    return stem.replace(".", "_") if _RESERVED.fullmatch(stem) else stem


def _word(value: Any) -> str | None:
    """A value as it can be told from all others; None where that needs a digest."""
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
