"""Of what runs were made that a sweep has already, beside what its document says now: nobody is to take the results of
old code for those of new code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from runyard.model.spec import RunSpec
from runyard.store import runs

PROGRAM = ("command", "script", "cwd", "env", "params_as", "code", "data", "inputs", "python_env")  # what makes results
_OF_RECORD = ("python", "freeze", "conda")  # versions and packages, and not where they were


def differs(connection: Connection, now: RunSpec, run_ids: Iterable[int]) -> list[str]:
    """The fields in which one of these runs differs, in the order of `PROGRAM`."""
    wanted = _essence(json.loads(json.dumps(now.to_json())))
    found: set[str] = set()
    for text in runs.specs(connection, run_ids):
        had = _essence(json.loads(text))
        found.update(name for name in PROGRAM if had[name] != wanted[name])
    return [name for name in PROGRAM if name in found]


def _essence(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Where code and packages are from does not matter where they are the same."""
    code, python = spec.get("code") or {}, spec.get("python_env")
    if isinstance(python, Mapping):
        record = python.get("record") or {}
        python = {**python, "record": [record.get(name) for name in _OF_RECORD]}
    return {**{name: spec.get(name) for name in PROGRAM}, "code": code.get("tree"), "python_env": python}
