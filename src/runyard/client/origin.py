"""Where a run was handed in: its directory, machine and the variables that decide which program a word means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from runyard import errors

VARIABLES = (
    "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
    "LANG", "LC_ALL", "HOME",
)  # fmt: skip


def complete(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with `cwd` and `origin` filled in; what the caller gave is kept, a cwd of None too."""
    whole = {**spec}
    if "cwd" not in whole:
        whole["cwd"] = current_directory()
    elif isinstance(whole["cwd"], (str, os.PathLike)):
        whole["cwd"] = os.path.abspath(os.path.expanduser(whole["cwd"]))
    whole.setdefault("origin", describe())
    return whole


def describe(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    from runyard import machine

    return {"host": machine.host_id(), "env": {name: environ[name] for name in VARIABLES if name in environ}}


def current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise errors.InvalidInput("the current directory does not exist any more", "change to another one") from None
