"""The three commands of the runner. Each imports only what it needs: an interpreter start is paid for every `run`."""

import json
import os
import sys
from typing import List

USAGE = """usage: python3 <runner directory> run <attempt directory>
       python3 <runner directory> zygote <site directory>
       python3 <runner directory> sweep <attempt directory>"""


def main(arguments: List[str]) -> int:
    commands = {"run": run, "zygote": zygote, "sweep": sweep}
    if len(arguments) != 2 or arguments[0] not in commands:
        print(USAGE, file=sys.stderr)
        return 2
    # Bytes, because the locale may not be able to tell the name of every directory.
    return commands[arguments[0]](os.fsencode(arguments[1]))


def run(directory: bytes) -> int:
    from . import process, runner

    process.settle_in()
    return runner.main(directory)


def zygote(directory: bytes) -> int:
    from . import zygote

    return zygote.main(directory)


def sweep(directory: bytes) -> int:
    from . import sweep

    result = sweep.sweep(directory)
    print(json.dumps(result))
    return 1 if result["left"] else 0
