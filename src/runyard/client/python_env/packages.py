"""Installed packages, from the metadata files of installers, as `pip freeze` and `conda list --explicit` list them."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

TOOLS = frozenset({"pip", "setuptools", "wheel", "distribute"})  # as `pip freeze` leaves them out
OF_THE_SYSTEM = frozenset({"debian", "rpm"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    name: str
    version: str
    installer: str = ""
    requirement: str = ""  # the requirement for pip; empty: it cannot be installed anywhere else
    folder: str = ""  # on this machine, from which it was installed

    def to_json(self) -> dict[str, str]:
        return {
            "name": self.name, "version": self.version, "installer": self.installer, "requirement": self.requirement,
            "folder": self.folder,
        }  # fmt: skip


def installed(places: Sequence[str]) -> list[Package]:
    """If a package is installed twice, the first is the one that is imported."""
    found: dict[str, Package] = {}
    for distribution in importlib.metadata.distributions(path=list(places)):
        name = distribution.metadata["Name"]
        key = re.sub(r"[-_.]+", "-", name or "").lower()
        if key and key not in TOOLS and key not in found:
            found[key] = _package(name, distribution)
    found |= {one.name.lower(): one for place in places for one in _developed(place)}
    return [found[key] for key in sorted(found)]


def conda_list(prefix: str) -> str:
    """Empty if it is not a conda environment."""
    lines = [line for path in sorted(Path(prefix, "conda-meta").glob("*.json")) if (line := _conda_line(path))]
    return "\n".join(["@EXPLICIT", *lines, ""]) if lines else ""


def freeze(packages: Iterable[Package]) -> str:
    """A requirements file. Packages that pip cannot install elsewhere are comments."""
    return "".join(f"{one.requirement or '# ' + why_not(one)}\n" for one in packages)


def why_not(package: Package) -> str:
    named = f"{package.name}=={package.version}"
    if package.installer in OF_THE_SYSTEM:
        return f"{named} is of the operating system"
    return f"{named} was installed from {package.folder}" if package.folder else f"{named} is of this machine only"


def _package(name: str, distribution: importlib.metadata.Distribution) -> Package:
    version = distribution.version
    installer = (distribution.read_text("INSTALLER") or "").strip()
    direct = _direct(distribution)
    requirement, folder = f"{name}=={version}", ""
    if direct.get("url"):
        requirement, folder = _from_direct(name, direct)
    elif installer in OF_THE_SYSTEM:
        requirement = ""
    return Package(name=name, version=version, installer=installer, requirement=requirement, folder=folder)


def _direct(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    """The installer's record of a package that came from no index: PEP 610."""
    try:
        told = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _from_direct(name: str, direct: dict[str, Any]) -> tuple[str, str]:
    """The requirement for pip, or the folder it came from."""
    url = _without_password(str(direct["url"]))
    if url.startswith("file:"):
        return "", unquote(urlsplit(url).path)
    below = f"#subdirectory={direct['subdirectory']}" if direct.get("subdirectory") else ""
    vcs = direct.get("vcs_info") or {}
    if vcs:
        return f"{name} @ {vcs.get('vcs')}+{url}@{vcs.get('commit_id')}{below}", ""
    hashes = (direct.get("archive_info") or {}).get("hashes") or {}
    check = f"#sha256={hashes['sha256']}" if "sha256" in hashes else below
    return f"{name} @ {url}{check}", ""


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at or (":" not in login and parts.scheme == "ssh"):
        return url
    return parts._replace(netloc=host).geturl()


def _developed(place: str) -> Iterator[Package]:
    """The file of `setup.py develop`, which names the folder."""
    for link in Path(place).glob("*.egg-link"):
        folder = (link.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[0].strip()
        yield Package(name=link.stem, version="0", folder=folder)


def _conda_line(path: Path) -> str:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if not isinstance(told, dict) or not told.get("url"):
        return ""
    return _without_password(str(told["url"])) + (f"#{told['md5']}" if told.get("md5") else "")
