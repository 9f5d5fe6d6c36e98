"""The interpreters of a site."""

import os
import re
import shutil
import subprocess
import sys
from typing import Dict, Iterator, Optional, Tuple

from .conda import Missing

ANSWER_S = 10.0
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_FOUND: Dict[Tuple[str, str], Optional[str]] = {}  # version by interpreter and PATH, for as long as this process lives


def usual_version(environ: Dict[str, str]) -> str:
    """Of the site's own python3."""
    for path in _candidates("", environ):
        version = _version(path, environ)
        if version:
            return version
    raise Missing("no python3 was found at this site")


def find(version: str, environ: Dict[str, str]) -> str:
    """An interpreter of exactly this version, like 3.11; raises Missing, which names the existing ones."""
    seen: Dict[str, str] = {}
    for path in _candidates(version, environ):
        found = _version(path, environ)
        if found == version:
            return path
        if found:
            seen.setdefault(found, path)
    has = ", ".join("%s (%s)" % item for item in sorted(seen.items())) or "none"
    raise Missing("the environment is one of Python %s, and this site has %s" % (version, has))


def _candidates(version: str, environ: Dict[str, str]) -> Iterator[str]:
    """By their names; whatever others there are may be older, or made for something else."""
    named = ["python" + version] if version else []
    for name in named + ["python3", "python"]:
        path = shutil.which(name, path=environ.get("PATH", os.defpath))
        if path:
            yield path
    yield sys.executable


def _version(path: str, environ: Dict[str, str]) -> Optional[str]:
    key = (path, environ.get("PATH", ""))
    if key not in _FOUND:
        _FOUND[key] = _ask(path, environ)
    return _FOUND[key]


def _ask(path: str, environ: Dict[str, str]) -> Optional[str]:
    try:
        told = subprocess.run(
            [path, "-E", "-s", "-c", _ASK], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, timeout=ANSWER_S, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    answer = told.stdout.decode("ascii", "replace").strip()
    return answer if re.match(r"3\.\d+$", answer) else None
