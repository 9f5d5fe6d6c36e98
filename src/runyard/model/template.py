"""Parameters into commands: `{name}`, `{model.lr}` for nested ones, `{{` and `}}` for literal braces."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from runyard import errors
from runyard.model import fields

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill_command(command: list[str] | str, params: Mapping[str, Any]) -> list[str]:
    """The argument vector to execute. A run without parameters keeps its braces untouched.

    A command given as one text is for the shell; values put into it are quoted for the shell.
    """
    if isinstance(command, str):
        return ["/bin/sh", "-c", _fill(command, params, shlex.quote) if params else command]
    return [_fill(word, params, str) for word in command] if params else list(command)


def _fill(text: str, params: Mapping[str, Any], quote: Callable[[str], str]) -> str:
    def replace(match: re.Match[str]) -> str:
        token = match[0]
        if token in ("{{", "}}"):
            return token[0]
        if match[1] is None:
            raise errors.InvalidInput(
                f"command: a lone {token!r} in {text!r}", f"write {token * 2} for a literal brace"
            )
        return quote(show_value(_look_up(match[1], params)))

    return _TOKEN.sub(replace, text)


def show_value(value: object) -> str:
    """Texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _look_up(name: str, params: Mapping[str, Any]) -> object:
    if name in params:
        return params[name]
    value: object = params
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise errors.InvalidInput(f"command: no parameter {name!r}", _offer(name, params))
        value = value[part]
    return value


def _offer(name: str, params: Mapping[str, Any]) -> str:
    return fields.nearest(name, _names(params)) + "; {{ and }} are literal braces"


def _names(params: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in params.items():
        found += _names(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else [f"{prefix}{key}"]
    return found
