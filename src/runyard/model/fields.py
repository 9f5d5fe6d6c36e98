"""Validation of untrusted values: each returns the clean value or raises an error with one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from runyard import errors


def mapping(value: object, where: str, known: Iterable[str]) -> dict[str, Any]:
    """A mapping whose keys are all known; the error for an unknown key names the nearest good one."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of names to values")
    for key in value:
        if key not in known:
            raise errors.InvalidInput(f"{where}: unknown field {key!r}", nearest(str(key), known))
    return dict(value)


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or the list of all good words."""
    names = sorted(map(str, known))  # of an enumeration, its values
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def text(value: object, where: str, longest: int, *, empty: bool = False, raw: bool = False) -> str:
    """`raw`: bytes that are not UTF-8 are allowed, as surrogate escapes."""
    if not isinstance(value, str) or not (value or empty):
        raise errors.InvalidInput(f"{where}: must be a text")
    if not raw and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise errors.InvalidInput(f"{where}: must be valid Unicode")
    if len(value) > longest:
        raise errors.InvalidInput(f"{where}: longer than {longest} characters")
    if "\0" in value:
        raise errors.InvalidInput(f"{where}: contains a zero byte")
    return value


def integer(value: object, where: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.InvalidInput(f"{where}: {value!r} is not a whole number")
    if not least <= value <= most:
        raise errors.InvalidInput(f"{where}: {value} is not between {least} and {most}")
    return value


def at_most(value: int, where: str, most: int) -> int:
    if value > most:
        raise errors.InvalidInput(f"{where}: {value} is more than {most}")
    return value


def boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidInput(f"{where}: must be true or false")
    return value


def texts(value: object, where: str, longest: int, *, raw: bool = False) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput(f"{where}: must be a list")
    return [text(item, f"{where}[{index}]", longest, empty=True, raw=raw) for index, item in enumerate(value)]


def one_of(value: object, where: str, known: Iterable[str]) -> str:
    names = list(known)
    if value not in names:
        raise errors.InvalidInput(f"{where}: {value!r} is not known", nearest(str(value), names))
    return str(value)


def web_address(value: object, where: str, longest: int) -> tuple[str, SplitResult]:
    """The URL and its parts. The error does not quote it: it may contain a key."""
    url = text(value, where, longest)
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is not a number
        is_one = False
    if not is_one:
        raise errors.InvalidInput(f"{where}: this is not a URL", "write it like https://host/path")
    return url, parts
