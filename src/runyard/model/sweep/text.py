"""A parameter of a space as people type it: `lr=0.1,0.01`, `depth=2..8`, `lr=log:1e-5..1e-1`, `width=64..512/64`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from runyard import errors

_RANGE = re.compile(r"(?P<log>log:\s*)?(?P<low>[^,]*?)\s*\.\.\s*(?P<high>[^,/]*?)(?:\s*/\s*(?P<step>[^,/]*))?")
_WHOLE = re.compile(r"[+-]?\d+")
_PART = re.compile(r"""  # of a list: up to the next comma, or in quotes
    \s*(?:"(?:[^"\\]|\\.)*" | '[^']*')\s*(?=,|\Z) | [^,]*
    """, re.VERBOSE | re.DOTALL)  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_words(words: Iterable[str]) -> dict[str, Any]:
    """The space that words such as `lr=0.1,0.01` mean, as it stands in a sweep's document."""
    space: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise errors.InvalidInput(f"--param: {word!r} is not a parameter", "write it like lr=0.1,0.01")
        if name in space:
            raise errors.InvalidInput(f"--param: {name!r} is there twice", f"give all its values at once: {name}=1,2")
        space[name] = parse(text, f"--param {name}")
    return space


def parse(text: str, where: str) -> list[Any] | dict[str, Any]:
    """A list of values, or the bounds of a range. Spaces around a value are not part of it, unless it is in quotes."""
    text = text.strip()
    if text.startswith("["):
        return _json_list(text, where)
    match = _RANGE.fullmatch(text)
    if match and (match["log"] or _is_number(match["low"]) or _is_number(match["high"])):
        return _bounds(match, where)
    if text.startswith("log:"):
        raise errors.InvalidInput(f"{where}: {text!r} is no range", "write it like log:1e-5..1e-1")
    return [_unquoted(part) for part in _parts(text)] if text else []


def _parts(text: str) -> Iterator[str]:
    """`"x,y",z` are two."""
    place = 0
    while place <= len(text):
        match = _PART.match(text, place)
        assert match is not None, "nothing at all is a part"
        yield match[0].strip()
        place = match.end() + 1


def _unquoted(part: str) -> Any:
    is_quoted = len(part) > 1 and part[0] == part[-1] == "'"
    return part[1:-1] if is_quoted else value(part)


def _bounds(match: re.Match[str], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {"from": _number(match["low"], where), "to": _number(match["high"], where)}
    if match["step"] is not None:
        found["step"] = _number(match["step"], where)
    return {**found, **({"log": True} if match["log"] else {})}


def _number(text: str, where: str) -> int | float:
    if not _is_number(text):
        raise errors.InvalidInput(f"{where}: {text!r} is not a number", "write a range like 2..8 or log:1e-5..1e-1")
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _json_list(text: str, where: str) -> list[Any]:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise errors.InvalidInput(f"{where}: {text[:80]!r} is no JSON list: {error}") from None
    if not isinstance(found, list):
        raise errors.InvalidInput(f"{where}: {text[:80]!r} is no JSON list")
    return found


def value(text: str) -> Any:
    """JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(word: str) -> NoReturn:
    """Python's reader takes NaN and Infinity, which are not JSON."""
    raise ValueError(word)
