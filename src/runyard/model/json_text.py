"""Strict parsing of untrusted JSON: NaN, 1e999 and duplicate names are refused, because parsers disagree on
them."""

from __future__ import annotations

import codecs
import collections
import json
import math
from typing import Any, NoReturn

from runyard import errors

DEEPEST = 64  # levels of lists and objects


def parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object in UTF-8."""
    value = parse(data)
    if not isinstance(value, dict):
        raise errors.InvalidInput("the body must be a JSON object", 'such as {"name": "value"}')
    return value


def parse(data: bytes) -> Any:
    """Any JSON value in UTF-8."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.InvalidInput(f"the body is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        raise errors.InvalidInput(
            f"the body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise errors.InvalidInput("the body is nested too deeply") from None
    except ValueError:  # raised by json for numbers of thousands of digits
        raise errors.InvalidInput("the body has a number of too many digits", "send it as a text") from None
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Iteratively: stored JSON must be readable with less stack than this parser has."""
    level = [value]
    for _ in range(DEEPEST):
        children = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
        level = [child for child in children if isinstance(child, (dict, list))]
        if not level:
            return
    raise errors.InvalidInput("the body is nested too deeply", f"use at most {DEEPEST} levels")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = collections.Counter(name for name, _ in pairs).most_common(1)
        raise errors.InvalidInput(f"the body names {twice[:80]!r} twice in one object", "keep one of them")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise errors.InvalidInput(f"the body has a number that is too large: {text[:80]}", "send it as a text")
    return value


def _no_constant(word: str) -> NoReturn:
    raise errors.InvalidInput(f"the body is not JSON: {word} is not a JSON number", "send it as a text, or null")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
