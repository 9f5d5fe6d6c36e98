"""Parameters in commands: `{name}`, `{model.lr}` for nested ones, `{{` and `}}` for literal braces."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from runyard import errors
from runyard.model import fields

_MISSING = object()
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill(command: list[str] | str, params: Mapping[str, Any]) -> list[str] | str:
    """The command with its parameters filled in; raises if a `{name}` has no parameter."""
    if isinstance(command, str):
        return _fill(command, params, shlex.quote)
    return [_fill(word, params, str) for word in command]


def placeholders(command: list[str] | str) -> list[str]:
    """The names of all parameters in a command; raises for a single brace."""
    found: dict[str, str] = {}
    for text in [command] if isinstance(command, str) else command:
        _replace(text, lambda name: found.setdefault(name, ""))
    return list(found)


def _fill(text: str, params: Mapping[str, Any], quote: Callable[[str], str]) -> str:
    return _replace(text, lambda name: quote(show_value(look_up(name, params))))


def _replace(text: str, value: Callable[[str], str]) -> str:
    def replace(match: re.Match[str]) -> str:
        token = match[0]
        if token in ("{{", "}}"):
            return token[0]
        if match[1] is None:
            raise errors.InvalidInput(
                f"command: a single {token!r} in {text!r}", f"write {token * 2} for a literal brace"
            )
        return value(match[1])

    return _TOKEN.sub(replace, text)


def show_value(value: object) -> str:
    """Strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def look_up(name: str, params: Mapping[str, Any]) -> Any:
    """A parameter by its name, or by its path with dots; raises if there is none."""
    value = find(name, params, _MISSING)
    if value is _MISSING:
        raise errors.InvalidInput(f"command: no parameter {name!r}", _offer(name, params))
    return value


def find(name: str, params: Mapping[str, Any], otherwise: Any = None) -> Any:
    """Like `look_up` for optional parameters, without the slow search for the nearest name."""
    if name in params:
        return params[name]
    value: Any = params
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return otherwise
        value = value[part]
    return value


def _offer(name: str, params: Mapping[str, Any]) -> str:
    return fields.nearest(name, names(params)) + "; {{ and }} are literal braces"


def flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested parameters by their dotted names, each with its value; an empty mapping is a value."""
    found: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def names(params: Mapping[str, Any]) -> list[str]:
    """The names of all parameters, nested ones by their paths."""
    return list(flat(params))
