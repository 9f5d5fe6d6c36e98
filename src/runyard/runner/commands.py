"""The three commands of the runner. Each imports only what it needs: an interpreter start is paid for every `run`."""

import json
import os
import sys
from typing import Callable, Dict, List, Optional

USAGE = """usage: python3 <runner directory> run <attempt directory> [<shell script>]
       python3 <runner directory> zygote <site directory>
       python3 <runner directory> sweep <attempt directory>"""


def main(arguments: List[str]) -> int:
    commands: Dict[str, Callable[..., int]] = {"run": run, "zygote": zygote, "sweep": sweep}
    most = 3 if arguments[:1] == ["run"] else 2
    if not 2 <= len(arguments) <= most or arguments[0] not in commands:
        print(USAGE, file=sys.stderr)
        return 2
    # Bytes, because the locale may not be able to tell the name of every directory.
    return commands[arguments[0]](*map(os.fsencode, arguments[1:]))


def run(directory: bytes, successor: Optional[bytes] = None) -> int:
    """The successor is a script that this process becomes when the record is written, where there is such a file."""
    from . import process, runner

    process.settle_in()
    code = runner.main(directory)
    if code == 0 and successor is not None:
        process.become(successor, directory)
    sys.stderr.flush()
    os._exit(code)  # an orderly end of the interpreter would be a tenth of what a short run costs


def zygote(directory: bytes) -> int:
    from . import zygote

    return zygote.main(directory)


def sweep(directory: bytes) -> int:
    from . import leftovers

    result = leftovers.sweep(directory)
    print(json.dumps(result))
    return 1 if result["left"] else 0
