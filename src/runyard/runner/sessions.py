"""Where systemd ends a session with everything in it when its connection ends: how to outlive one.

Most machines do not (KillUserProcesses=no). Where it is so, a process can be put into a scope of the account's own
service manager, which lives on where the account may linger.
"""

import functools
import os
import subprocess
from typing import Dict, List

_PATIENCE_S = 5.0


def are_survived() -> bool:
    """Whether what is started with `outlasting` goes on after the last connection."""
    return not _are_killed() or _lingers()


def outlasting() -> List[str]:
    """The words before a command that is to go on."""
    if not _are_killed() or not _lingers():
        return []
    where = "XDG_RUNTIME_DIR=/run/user/%d" % os.getuid()
    return ["env", where, "systemd-run", "--user", "--scope", "--quiet", "--collect", "--"]


@functools.lru_cache(maxsize=None)
def _are_killed() -> bool:
    said = _properties("show-user", "-p", "KillUserProcesses", "-p", "KillExcludeUsers", "-p", "KillOnlyUsers")
    only, excluded = said.get("KillOnlyUsers", "").split(), said.get("KillExcludeUsers", "").split()
    name = _account()
    return said.get("KillUserProcesses") == "yes" and name not in excluded and (not only or name in only)


@functools.lru_cache(maxsize=None)
def _lingers() -> bool:
    return _properties("show-user", _account(), "-p", "Linger").get("Linger") == "yes"


def _properties(*words: str) -> Dict[str, str]:
    """What logind says; nothing where there is none."""
    try:
        said = subprocess.run(
            ["loginctl", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = said.stdout.decode("utf-8", "replace").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _account() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
