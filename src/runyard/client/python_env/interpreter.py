"""The interpreter that `python` means here, and the directories of its packages. Started once; its answer is cached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.python_env import fact_cache

ANSWER_S = 20.0
# -E: what PYTHONPATH adds is not installed. The first entry is the directory that we are in.
_ASK = """
import json, os, platform, site, sys
places = [place for place in sys.path[1:] if os.path.basename(place) in ("site-packages", "dist-packages")]
print(json.dumps({"version": platform.python_version(), "prefix": sys.prefix, "places": places}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    version: str
    prefix: str
    places: tuple[str, ...]  # directories with installed packages


def find(cache: Path, environ: Mapping[str, str], here: Path) -> Interpreter | None:
    """Raises OSError and ValueError if there is an interpreter that does not answer."""
    program = _program(environ, here)
    if program is None:
        return None
    place = fact_cache.page(cache, "interpreter", program)
    seen = [program, *fact_cache.identity([program, _configuration(program)])]
    told = fact_cache.read(place, seen)
    if told is None:
        told = _ask(program, environ)
        fact_cache.write(place, seen, told)
    return Interpreter(version=told["version"], prefix=told["prefix"], places=tuple(told["places"]))


def _program(environ: Mapping[str, str], here: Path) -> str | None:
    """An environment that is active, or else the first in PATH: that is what a run on this machine would start."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        path = os.path.join(environ.get(variable, ""), "bin", "python")
        if environ.get(variable) and os.access(path, os.X_OK):
            return path
    found = next(filter(None, (shutil.which(name, path=environ.get("PATH")) for name in ("python", "python3"))), None)
    return _behind_shim(found, environ, here) if found else None


def _behind_shim(program: str, environ: Mapping[str, str], here: Path) -> str:
    """pyenv starts interpreters through a slow script: its choice is computed here instead."""
    shims = Path(program).parent
    if shims.name != "shims" or not (shims.parent / "versions").is_dir():
        return program
    chosen = environ.get("PYENV_VERSION") or _chosen_version(here, shims.parent)
    behind = shims.parent / "versions" / chosen.split(":")[0] / "bin" / "python"
    return str(behind) if chosen and os.access(behind, os.X_OK) else program


def _chosen_version(here: Path, root: Path) -> str:
    for path in (*(place / ".python-version" for place in (here, *here.parents)), root / "version"):
        try:
            return (path.read_text(encoding="utf-8").split() or [""])[0]
        except OSError:
            continue
    return ""


def _configuration(program: str) -> str:
    """A value that changes when an environment is made again for another interpreter."""
    return str(Path(program).parent.parent / "pyvenv.cfg")


def _ask(program: str, environ: Mapping[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [program, "-E", "-c", _ASK], capture_output=True, text=True, timeout=ANSWER_S, env=dict(environ),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"{program} does not work: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told
