"""Where a run was submitted: directory, machine and the variables that determine its programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from runyard import errors

VARIABLES = (
    "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
    "LANG", "LC_ALL", "HOME",
)  # fmt: skip


def complete(specs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The specs with `cwd` and `origin` filled in; what the caller gave is kept, a cwd of None too."""
    described = describe()
    return [{"origin": described, **spec, "cwd": _directory(spec)} for spec in specs]


def _directory(spec: Mapping[str, Any]) -> Any:
    """Where nothing depends on the current directory, it need not be there."""
    cwd = spec["cwd"] if "cwd" in spec else current_directory()
    return os.path.abspath(os.path.expanduser(cwd)) if isinstance(cwd, (str, os.PathLike)) else cwd


def describe(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    from runyard import machine

    return {"host": machine.host_id(), "env": {name: environ[name] for name in VARIABLES if name in environ}}


def current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise errors.InvalidInput("the current directory does not exist any more", "change to another one") from None
