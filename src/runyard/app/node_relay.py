"""relay=node of a cluster: the script that a native job runs at its end, so that the node uploads its results."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from runyard import home
from runyard.agent import sites
from runyard.backends.batch.options import NODE
from runyard.hosts import local
from runyard.model.site import SiteSpec
from runyard.settings import Settings

NAME = "relay.sh"
BOUND_S = 30  # how long it may delay the end of a job

_SCRIPT = """\
#!/bin/sh
# runyard, site {site}, relay=node: run by a native job when its run has ended. Written by the site's agent.
# It takes {bound} seconds at the most, and changes nothing about how the job ended.
case $1 in
/*) set -- --ended "$1" ;;
esac
env -i {variables} {command} "$@" </dev/null && exit 0
echo "runyard: $(uname -n) could not report the end of this run; the next tick of the site's agent does" >&2
exit 0
"""


def keep(site: str, described: SiteSpec, loaded: Settings) -> None:
    """The script exists only if it is configured and can work."""
    if described.ssh:
        return
    directory = sites.own_directory(site, described, loaded)
    path = directory / NAME
    if not is_wanted(described) or obstacle(described, loaded):
        path.unlink(missing_ok=True)
        return
    text = _script(site, directory, loaded).encode()
    if not path.exists() or path.read_bytes() != text:
        local.make_directory(os.fspath(directory))
        local.write_file(os.fspath(path), text)


def is_wanted(described: SiteSpec) -> bool:
    return described.options.get("relay") == NODE


def obstacle(described: SiteSpec, loaded: Settings) -> str:
    """Why a compute node could not do it; empty if no obstacle is known."""
    if described.ssh:
        return "the site is reached by ssh, and its nodes cannot act for an agent on this machine"
    if loaded.url:
        return "" if loaded.token_file.exists() else f"there is no token in {loaded.token_file} for a node to use"
    if home.has_daemon(loaded):
        return "the yard of this home is always running, and sees the end of a run before a node could report it"
    return ""


def command(site: str | None, directory: Path | None, *words: str) -> str:
    """`runyard check` with the interpreter that runs this, complete for a shell without any environment."""
    chosen = [*(["--site", site] if site else []), *(["--dir", os.fspath(directory)] if directory else [])]
    return shlex.join([sys.executable, "-P", "-m", "runyard", "check", *chosen, *words])


def variables(loaded: Settings) -> str:
    return f"RUNYARD_HOME={shlex.quote(os.fspath(loaded.home))}"


def _script(site: str, directory: Path, loaded: Settings) -> str:
    own = directory if loaded.url else None  # the yard of a home knows the directory itself
    return _SCRIPT.format(site=site, bound=BOUND_S, variables=variables(loaded), command=command(site, own))
