"""What a run executes: its command with parameters in place, and those that are added to it.

Braces mean something in runs with parameters, and in those that have a number among others: `{index}`. Everywhere else
they are left alone, and so they are in what Slurm's and Grid Engine's tools hand in.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from runyard.model import passing, template

INDEX = "index"
ALONE = 1  # the number of a run that is not one of many


def number_of(spec: Mapping[str, Any]) -> int:
    """Its number in its sweep or array."""
    return _number(spec) or ALONE if not spec.get("array") else int(spec["array"]["index"])


def argv_of(spec: Mapping[str, Any]) -> list[str]:
    """The words to execute, of a run as it is handed in or stored; raises when a `{name}` has no parameter.

    A command given as one text is for the shell; values put into it are quoted for the shell.
    """
    filled = with_params(spec)
    return ["/bin/sh", "-c", filled] if isinstance(filled, str) else filled


def with_params(spec: Mapping[str, Any]) -> list[str] | str:
    """The same as people write it: words, or a text for the shell."""
    command, params, way = spec["command"], spec.get("params") or {}, spec.get("params_as")
    is_template = bool(params) or _number(spec) is not None
    filled = template.fill(command, {INDEX: number_of(spec), **params}) if is_template else command
    named = template.placeholders(command) if is_template and way else ()
    added = passing.words(way, params, named) if way else []
    if isinstance(filled, str):
        return " ".join([filled, *map(shlex.quote, added)])
    return [*filled, *added]


def _number(spec: Mapping[str, Any]) -> int | None:
    """None: it has none, or it is not for its command to use."""
    array = spec.get("array") if spec.get("dialect") is None else None
    return int(array["index"]) if array else spec.get("index")
