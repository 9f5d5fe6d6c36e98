"""Python environments of a site, found or built where its files are: standard library only, python3 ≥ 3.6.

An agent copies this package to the site and asks `environments.look` there; see docs/internals/environments.md.

    envs/<digest>/               one environment: of what it is made from, the version of Python and the machine
      lock                       held by whoever builds it, with the name of that build in it
      <build>/                   the environment itself; its programs know their place, so it is never moved
      <build>.log .json          what was said, and how it ended
      current                    a link to the build that went well
      pins/<agent>.<attempt>     who needs it
    envs/lock                    held shared while pins are made, alone while something is removed
"""

import os
from typing import Dict

HERE = os.path.dirname(os.path.abspath(__file__))


def files() -> Dict[str, bytes]:
    """Name and content of every file that a copy needs."""
    found = {}
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".py"):
            with open(os.path.join(HERE, name), "rb") as file:
                found[name] = file.read()
    return found
