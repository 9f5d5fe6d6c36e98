"""The far half of a host: the code that runs on the machine with the files. Standard library only, python3 ≥ 3.6.

On this machine LocalHost calls these functions. Another machine needs nothing of runyard: SshHost sends the text of
these modules there ahead of each request, so that no copy can be missing, outdated or partly deleted by a clean-up.

Paths are bytes, because the text of an old Python in the C locale cannot name every file.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

MODULES = (  # each imports only those before it
    "files", "commands", "scanning", "outputs", "trees", "cache", "building", "checkpoints",
    "attempt_cleanup", "cache_cleanup", "packages", "server",
)  # fmt: skip
OLDEST = "3.6"
TOO_OLD = "too old for runyard: "

# No option that an old Python lacks, and no character that any shell reads in its own way within double quotes. The
# first entry of the path is the current directory: a json.py that lies there is not ours.
BOOT = (
    "import sys;sys.path.pop(0);sys.version_info<(3,6)and sys.exit('%s'+sys.version.split()[0]);"
    "i=sys.stdin.buffer;exec(i.read(int(i.readline())))"
) % TOO_OLD
OPTIONS = "-E -s -S"  # neither the user's variables nor any site-packages are used


@functools.cache
def program() -> bytes:
    """What an interpreter that was started with BOOT reads before the request."""
    boot = _source("boot")
    sources = [_source(name) for name in MODULES]
    contents = json.dumps([[name, len(source)] for name, source in zip(MODULES, sources, strict=True)]).encode()
    return b"".join([b"%d\n" % len(boot), boot, contents, b"\n", *sources])


def _source(name: str) -> bytes:
    return resources.files(__package__).joinpath(f"{name}.py").read_bytes()
