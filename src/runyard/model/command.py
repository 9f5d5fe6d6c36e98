"""What a run executes: its command with parameters filled in or added.

Braces are replaced in runs with parameters, and in those with an index: `{index}`. In all other commands, and in jobs
submitted by `sbatch` and `qsub`, they are left unchanged.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from runyard.model import parameter_passing, template

INDEX = "index"
ALONE = 1  # the index of a single run


def number_of(spec: Mapping[str, Any]) -> int:
    """Its index in its sweep or array."""
    return _number(spec) or ALONE if not spec.get("array") else int(spec["array"]["index"])


def argv_of(spec: Mapping[str, Any]) -> list[str]:
    """The words to execute, of a submitted or stored run; raises if a `{name}` has no parameter.

    A command given as one string is for the shell; values filled in are quoted for the shell.
    """
    filled = with_params(spec)
    return ["/bin/sh", "-c", filled] if isinstance(filled, str) else filled


def with_params(spec: Mapping[str, Any]) -> list[str] | str:
    """The command as written: words, or a string for the shell."""
    command, params, way = spec["command"], spec.get("params") or {}, spec.get("params_as")
    is_template = bool(params) or _number(spec) is not None
    filled = template.fill(command, {INDEX: number_of(spec), **params}) if is_template else command
    named = template.placeholders(command) if is_template and way else ()
    added = parameter_passing.words(way, params, named) if way else []
    if isinstance(filled, str):
        return " ".join([filled, *map(shlex.quote, added)])
    return [*filled, *added]


def _number(spec: Mapping[str, Any]) -> int | None:
    """None if it has no index, or its command may not use it."""
    array = spec.get("array") if spec.get("dialect") is None else None
    return int(array["index"]) if array else spec.get("index")
