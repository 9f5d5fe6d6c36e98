"""The values of `python_env`, and what is sent to the yard for them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.client.python_env.recording import Recording
from runyard.model.python_env import BY_CONDA, CONDA, FILE, LARGEST_FILE, NONE, PIP, RECORD, SYNC

WORDS = (RECORD, SYNC, NONE)
_ELSEWHERE = re.compile(r"\s*(-r|-c|-e|--requirement|--constraint|--editable|\.{1,2}/|\.\s*$|file:)")


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvFile:
    """A requirements.txt or environment.yml here."""

    path: Path


def resolve(given: object, root: Path) -> Any:
    """A keyword, `conda:NAME`, a file below `root`, or the yard's own form."""
    if isinstance(given, (Mapping, EnvFile)) or given is None:
        return given
    if isinstance(given, str) and (given in WORDS or given.startswith(CONDA)):
        return given
    if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
        raise errors.InvalidInput("python_env: must be a text", "write record, sync, none, conda:NAME or a file")
    path = root / Path(os.fspath(given)).expanduser()
    if not path.is_file():
        raise errors.InvalidInput(
            f"python_env: there is no file {path}",
            "write record, sync, none, conda:NAME, or the path of a requirements.txt or environment.yml",
        )
    return EnvFile(path=path)


def complete(given: Any, recording: Recording, code: Path | None) -> tuple[Any, dict[str, bytes]]:
    """The field in the yard's form, and the files that it names. `code`: the folder that is sent as code."""
    if isinstance(given, Mapping) or given == NONE:
        return given, {}
    noted = {"record": recording.recorded.to_json()}
    if isinstance(given, EnvFile):
        data = _read(given.path)
        built = {"use": FILE, "file": _digest(data), "kind": _kind(given.path, data), "name": given.path.name}
        return {**built, **noted}, {**recording.texts(), _digest(data): data}
    if given == SYNC:
        locked, data = _lock(recording, code)
        return {"use": SYNC, "file": _digest(data), "name": "lock", **locked, **noted}, {
            **recording.texts(),
            _digest(data): data,
        }
    return {"use": given or RECORD, **noted}, recording.texts()


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise errors.InvalidInput(
            f"python_env: {path}: {(error.strerror or '').lower()}", "name another file"
        ) from None
    if len(data) > LARGEST_FILE:
        raise errors.InvalidInput(
            f"python_env: {path} has more than {LARGEST_FILE} bytes", "that is no list of packages"
        )
    return data


def _kind(path: Path, data: bytes) -> str:
    if path.suffix in (".yml", ".yaml"):
        return BY_CONDA
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if _ELSEWHERE.match(line):
            raise errors.InvalidInput(
                f"python_env: {path.name}, line {number}: {line.strip()!r} is not at the site",
                "write packages by name into this one file, and send your own with --code",
            )
    return PIP


def _lock(recording: Recording, code: Path | None) -> tuple[dict[str, Any], bytes]:
    noted = recording.recorded
    if not noted.freeze:
        why = noted.notes[0] if noted.notes else "there are no packages in it"
        raise errors.InvalidInput(f"python_env: there is nothing to sync: {why}", "activate an environment first")
    if noted.conda:
        return _conda_lock(recording)
    bound = [one for one in recording.packages if one["folder"] and not _is_below(one["folder"], code)]
    if bound:
        named = ", ".join(f"{one['name']} ({one['folder']})" for one in bound)
        raise errors.InvalidInput(
            f"python_env: it cannot be built elsewhere: installed from a folder of this machine: {named}",
            "install it from an index or a repository, or submit from its folder so that it comes with the code",
        )
    lines = [line for line in recording.freeze.splitlines(keepends=True) if not line.startswith("#")]
    version = ".".join(noted.python.split(".")[:2])
    return {"kind": PIP, "python": version}, "".join(lines).encode("utf-8", "surrogateescape")


def _conda_lock(recording: Recording) -> tuple[dict[str, Any], bytes]:
    others = [one["name"] for one in recording.packages if one["installer"] in ("pip", "uv")]
    if others:
        raise errors.InvalidInput(
            f"python_env: pip has put {len(others)} packages into this conda environment: {', '.join(others[:5])}",
            "write an environment.yml that has them (conda env export), and name that file instead of sync",
        )
    return {"kind": BY_CONDA}, recording.conda.encode("utf-8", "surrogateescape")


def _is_below(folder: str, code: Path | None) -> bool:
    return code is not None and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(code))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
