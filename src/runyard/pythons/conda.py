"""The conda programs and environments of a site. No program is started for that."""

import glob
import os
import shutil
from typing import Dict, Iterable, List, Optional

PROGRAMS = ("micromamba", "mamba", "conda")  # the fastest first
USUAL = (
    "~/miniforge3", "~/mambaforge", "~/miniconda3", "~/anaconda3", "~/micromamba", "~/.local/share/mamba",
    "/opt/conda", "/opt/miniforge3", "/opt/miniconda3", "/opt/anaconda3", "/usr/local/miniconda3",
)  # fmt: skip
NOT_THERE = "set the site's option conda_root to the directory of its conda"

Environ = Dict[str, str]


class Missing(Exception):
    """The text says what is missing, and what exists."""


def find(named: str, root: str, environ: Environ) -> str:
    """The prefix of an environment by its name or path; raises Missing."""
    if named.startswith("/"):
        if not _is_whole(named):
            raise Missing("there is no conda environment %s at this site: it has no bin/python" % named)
        return named
    known = environments(root, environ)
    if named not in known:
        names = ", ".join(sorted(known))
        has = "it has " + names if names else "no conda was found there; " + NOT_THERE
        raise Missing("there is no conda environment %r at this site; %s" % (named, has))
    return known[named]


def environments(root: str, environ: Environ) -> Dict[str, str]:
    """Name and prefix. If two have the same name, the one of the first root counts, as for conda itself."""
    found: Dict[str, str] = {}
    for place in _roots(root, environ):
        for prefix in sorted(glob.glob(os.path.join(glob.escape(place), "envs", "*"))):
            found.setdefault(os.path.basename(prefix), prefix)
        found.setdefault("base", place)
    for prefix in _listed(environ):
        found.setdefault(os.path.basename(prefix), prefix)
    return {name: prefix for name, prefix in found.items() if _is_whole(prefix)}


def program(root: str, environ: Environ) -> str:
    """What builds environments; raises Missing."""
    for variable in ("MAMBA_EXE", "CONDA_EXE"):
        if os.access(environ.get(variable, ""), os.X_OK):
            return environ[variable]
    places = [os.path.join(place, "bin") for place in _roots(root, environ)]
    for name in PROGRAMS:
        path = shutil.which(name, path=os.pathsep.join(places + [environ.get("PATH", os.defpath)]))
        if path:
            return path
    raise Missing("neither conda, mamba nor micromamba is at this site; " + NOT_THERE)


def _roots(root: str, environ: Environ) -> List[str]:
    named = [root, environ.get("MAMBA_ROOT_PREFIX", "")]
    program = environ.get("CONDA_EXE", "")
    named.append(os.path.dirname(os.path.dirname(program)))
    named += [os.path.dirname(place) for place in _split(environ.get("CONDA_ENVS_PATH", ""))]
    named += USUAL
    return [place for place in _unique(_expanded(place, environ) for place in named) if place and os.path.isdir(place)]


def _listed(environ: Environ) -> List[str]:
    """The file in which conda lists its environments, and the directory for users who may not write to its own."""
    home = _expanded("~/.conda", environ)
    found = glob.glob(os.path.join(glob.escape(home), "envs", "*"))
    try:
        with open(os.path.join(home, "environments.txt"), encoding="utf-8", errors="replace") as file:
            found += [line.strip() for line in file if line.strip()]
    except OSError:
        pass
    return found


def _is_whole(prefix: str) -> bool:
    return os.access(os.path.join(prefix, "bin", "python"), os.X_OK)


def _expanded(path: str, environ: Environ) -> str:
    home: Optional[str] = environ.get("HOME")
    return home + path[1:] if path.startswith("~/") and home else os.path.expanduser(path)


def _split(paths: str) -> List[str]:
    return [path for path in paths.split(os.pathsep) if path]


def _unique(items: Iterable[str]) -> List[str]:
    found: List[str] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
