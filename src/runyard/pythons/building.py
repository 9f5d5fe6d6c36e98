"""Build an environment, with the tools and the settings that the site has: uv or pip, micromamba, mamba or conda.

The index and how it is reached are configured there (pip.conf, PIP_*, uv.toml, UV_*, .condarc), never here.
"""

import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List

from . import conda, interpreters, inventory

Json = Dict[str, Any]

LIMIT_S = 2 * 3600.0  # for one step
MOST_LINES = 4  # of what a tool said at its end
_PROBLEMS = ("ERROR:", "error:", "fatal:", "CondaError", "LibMambaUnsatisfiableError", "ResolvePackageNotFound")


class Failed(Exception):
    """The text is the reason."""


def build(place: str, build: str, ask: Json) -> None:
    """An error is recorded for later calls."""
    prefix, log = os.path.join(place, build), os.path.join(place, build + ".log")
    try:
        inventory.clear(place, build)
        inventory.tidy(*ask["tidy"])
        for step in _steps(prefix, ask):
            _carry_out(step, log)
        inventory.succeed(place, build)
    except (Failed, conda.Missing) as error:
        inventory.fail(place, build, str(error))
    except OSError as error:
        told = "%s: %s" % (os.fsdecode(error.filename or prefix), error.strerror)
        inventory.fail(place, build, told)


def _steps(prefix: str, ask: Json) -> List[List[str]]:
    file = prefix + (".yml" if ask["kind"] == "conda" and not ask["explicit"] else ".txt")
    with open(file, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(ask["text"])
    return _by_conda(prefix, file, ask) if ask["kind"] == "conda" else _by_pip(prefix, file, ask["python"])


def _by_pip(prefix: str, file: str, version: str) -> List[List[str]]:
    environ, python = dict(os.environ), os.path.join(prefix, "bin", "python")
    uv = shutil.which("uv")
    if uv and not _only_pip_is_configured(environ):
        return [
            [uv, "venv", "--no-project", "--python", version, prefix],
            [uv, "pip", "install", "--python", python, "-r", file],
        ]
    base = interpreters.find(version, environ)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    return [[base, "-m", "venv", prefix], pip + ["-r", file]]


def _only_pip_is_configured(environ: Dict[str, str]) -> bool:
    """uv does not read pip's settings."""
    return any(name.startswith("PIP_") for name in environ) and not any(name.startswith("UV_") for name in environ)


def _by_conda(prefix: str, file: str, ask: Json) -> List[List[str]]:
    program = conda.program(ask["conda_root"], dict(os.environ))
    if os.path.basename(program) == "micromamba":
        return [[program, "create", "--yes", "--prefix", prefix, "--file", file]]
    if ask["explicit"]:
        return [[program, "create", "--yes", "--prefix", prefix, "--file", file]]
    return [[program, "env", "create", "--prefix", prefix, "--file", file]]


def _carry_out(step: List[str], log: str) -> None:
    """Its output goes to ours."""
    sys.stdout.flush()
    try:
        code = subprocess.call(step, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed("it took longer than %d hours" % (LIMIT_S // 3600)) from None
    if code:
        raise Failed(_reason(step, code, inventory.tail(log)))


def _reason(step: List[str], code: int, lines: List[str]) -> str:
    said = [line for line in lines if line and not line.startswith("[notice]")]
    problems = [line for line in said if line.startswith(_PROBLEMS)]
    told = "; ".join((problems or said)[-MOST_LINES:])
    name = "%s %s" % (os.path.basename(step[0]), " ".join(word for word in step[1:4] if not word.startswith("/")))
    return told or "%s ended with code %d" % (name, code)
