"""Lists of packages as pip and conda write them: names with versions and builds."""

from __future__ import annotations

import re

_PINNED = re.compile(r"(?:# )?([A-Za-z0-9][\w.-]*)==(\S+)(.*)")
_FROM = re.compile(r"([A-Za-z0-9][\w.-]*) @ (\S+)")
_CONDA = re.compile(r"(.+)-([^-]+-[^-]+?)(?:\.tar\.bz2|\.conda)?")


def of_pip(text: str) -> dict[str, str]:
    """From a list in the format of `pip freeze`; comments name packages that pip cannot install elsewhere."""
    found = {}
    for line in text.splitlines():
        if match := _PINNED.fullmatch(line.strip()):
            found[_key(match[1])] = f"{match[2]}{match[3]}"
        elif match := _FROM.fullmatch(line.strip()):
            found[_key(match[1])] = match[2]
    return found


def of_conda(text: str) -> dict[str, str]:
    """From a list in the format of `conda list --explicit`: the version and the build."""
    names = (line.partition("#")[0].rpartition("/")[2] for line in text.splitlines() if "/" in line)
    return {match[1]: match[2] for name in names if (match := _CONDA.fullmatch(name))}


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
