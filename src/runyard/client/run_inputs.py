"""Code, data and environment to send with a run, in the form that users write:

code   not given: the current folder, if it is in a git checkout and nothing else sets the working directory;
       '.' or True, a path or a list of paths below the current folder; False or None: none
data   'corpora', a folder here that is sent; '/path', which exists already where the run executes;
       'name=corpora' and 'name=/path' to give it another name
python_env  'record', 'sync', 'none', 'conda:NAME', or the path of a requirements.txt or environment.yml here

A mapping is passed on in the yard's own form, see `runyard.model.staged`. No file is read here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.client import origin, python_env
from runyard.model import paths

Spec = Mapping[str, Any]
ELSEWHERE = ("cwd", "script")  # a run that has one of these does not work in a copy of this folder


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeHere:
    """Paths below the project's folder, at which relative paths of commands start."""

    root: Path
    paths: tuple[str, ...] = (".",)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataHere:
    """A folder here, and where a run finds it below its data directory."""

    folder: Path
    to: str


def resolve(spec: Spec, root: Path | None = None) -> dict[str, Any]:
    """The spec with `code`, `data` and `python_env` resolved, relative to this folder (None: the current one)."""
    if not isinstance(spec, Mapping):
        raise errors.InvalidInput(
            f"a run is a mapping, and not {spec!r:.80}", 'such as {"command": ["python", "x.py"]}'
        )
    resolved = dict(spec)
    if "code" in spec:
        resolved["code"] = code_at(spec["code"], root)
    elif root is None and not any(name in spec for name in ELSEWHERE):
        resolved["code"] = _checkout_here()
    if spec.get("data"):
        given = spec["data"]
        resolved["data"] = [data_at(item, root) for item in (given if isinstance(given, (list, tuple)) else [given])]
    if spec.get("python_env") is not None:
        resolved["python_env"] = python_env.resolve(spec["python_env"], root or _here())
    return {name: value for name, value in resolved.items() if name != "code" or value is not None}


def code_at(given: object, root: Path | None = None) -> CodeHere | Spec | None:
    if given is None or given is False:
        return None
    if isinstance(given, (CodeHere, Mapping)):
        return given
    place = root or _here()
    if given is True:
        return CodeHere(root=place)
    items: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    if not items or not all(isinstance(item, (str, os.PathLike)) and os.fspath(item) for item in items):
        raise errors.InvalidInput("code: must be a path or a list of paths", "write it like: code: .")
    return CodeHere(root=place, paths=tuple(os.fspath(item) for item in items))


def data_at(given: object, root: Path | None = None) -> DataHere | Spec:
    if isinstance(given, (DataHere, Mapping)):
        return given
    if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
        raise errors.InvalidInput("data: must be a list of folders", "write it like: data: [corpora]")
    place = root or _here()
    name, path = _split(os.fspath(given), place)
    if not path:  # such as NAME=$VARIABLE, of one that is not set
        raise errors.InvalidInput(f"data: {given!r} names no folder", "write it like words=/scratch/lists/en")
    if os.path.isabs(path):
        there = os.path.normpath(path)
        return {"path": there, "to": _called(name or os.path.basename(there), there)}
    folder = Path(os.path.normpath(place / path))
    if not folder.is_dir():
        raise errors.InvalidInput(
            f"data: there is no folder {folder}", "name one here, or begin with / for one where the run executes"
        )
    return DataHere(folder=folder, to=paths.relative(name or name_below(folder, place), "data"))


def name_below(folder: Path, root: Path) -> str:
    """Its path in the project, so that relative paths mean the same; else its own name."""
    relative = os.path.relpath(folder, root)
    return folder.name if relative.startswith("..") or relative == "." else relative


def find_checkout(folder: Path) -> Path | None:
    """The folder with `.git` in it, at or above this one; found without calling git."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place / ".git"):
            return place
    return None


def _checkout_here() -> CodeHere | None:
    here = _here()
    return CodeHere(root=here) if find_checkout(here) else None


def _here() -> Path:
    return Path(origin.current_directory())


def _called(name: str, path: str) -> str:
    if not name:
        raise errors.InvalidInput(f"data: {path} has no name of its own", f"give it one: NAME={path}")
    return paths.relative(name, "data")


def _split(text: str, root: Path) -> tuple[str, str]:
    """`name=path`, unless a folder with that whole name exists."""
    name, equals, path = text.partition("=")
    if not equals or text.startswith("/") or (root / text).is_dir():
        return "", text
    return name, path
