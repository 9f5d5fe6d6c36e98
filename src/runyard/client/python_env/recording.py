"""Record the submitter's environment. While nothing was installed, this only checks a few directories. It never fails a
submit: what cannot be determined is recorded as unknown."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.python_env import fact_cache, interpreter
from runyard.model.python_env import MOST_NOTES, Recorded


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    recorded: Recorded
    freeze: str = ""  # as pip reads it
    conda: str = ""  # as conda reads it
    packages: tuple[Mapping[str, str], ...] = ()  # see `packages.Package`

    def texts(self) -> dict[str, bytes]:
        """By digest."""
        return {_digest(text): _bytes(text) for text in (self.freeze, self.conda) if text}


def record(cache: Path, environ: Mapping[str, str] = os.environ, here: Path | None = None) -> Recording:
    """Never raises."""
    try:
        found = interpreter.find(cache, environ, here or Path.cwd())
        if found is None:
            return _unknown("there is no python here")
        return _read(cache, found)
    except Exception as error:  # whatever people have on their machines: it must not cost them a run
        return _unknown(f"the environment could not be recorded: {str(error) or error!r}")


def _read(cache: Path, found: interpreter.Interpreter) -> Recording:
    page = fact_cache.page(cache, "packages", found.prefix)
    watched = [*found.places, os.path.join(found.prefix, "conda-meta")]
    seen = [found.version, *found.places, *fact_cache.identity(watched)]
    told = fact_cache.read(page, seen)
    if told is None:
        told = _look(found)
        fact_cache.write(page, seen, told)
    freeze, conda, packages = told["freeze"], told["conda"], told["packages"]
    recorded = Recorded(
        python=found.version, prefix=found.prefix, packages=len(packages),
        freeze=_digest(freeze) if freeze else None, conda=_digest(conda) if conda else None, notes=tuple(told["notes"]),
    )  # fmt: skip
    return Recording(recorded=recorded, freeze=freeze, conda=conda, packages=tuple(packages))


def _look(found: interpreter.Interpreter) -> dict[str, Any]:
    from runyard.client.python_env import packages  # what reads packages takes a while to load, and is rarely needed

    there = packages.installed(found.places)
    notes = [packages.why_not(one) for one in there if not one.requirement and one.folder]
    return {
        "freeze": packages.freeze(there), "conda": packages.conda_list(found.prefix),
        "packages": [one.to_json() for one in there], "notes": [note[:1000] for note in notes[:MOST_NOTES]],
    }  # fmt: skip


def _unknown(note: str) -> Recording:
    return Recording(recorded=Recorded(python="", notes=(note[:1000],)))


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(_bytes(text)).hexdigest()}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
