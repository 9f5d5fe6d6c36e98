"""Python environments of a site, found or built where its files are: standard library only, python3 ≥ 3.6.

An agent copies this package to the site and calls `environments.look` there; see docs/internals/environments.md.

    envs/<digest>/               one environment: digest of its packages, the version of Python and the machine
      lock                       held by the builder; contains the name of its build
      <build>/                   the environment itself; its programs contain their own path, so it is never moved
      <build>.log .json          the output of the build, and how it ended
      current                    a link to the successful build
      pins/<agent>.<attempt>     attempts that need it
    envs/lock                    held shared while pins are made, exclusively while something is deleted
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
