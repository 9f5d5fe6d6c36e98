"""Files for a run's standard output and error, and the placeholders in their names.

| in the name | is                                                                                 | filled in by |
|-------------|------------------------------------------------------------------------------------|--------------|
| `%j`, `%4j` | the run's id, with zeros up to the width                                           | the agent    |
| `%A`        | the id of the first run of its array; without an array the same as `%j`            | the agent    |
| `%N`        | the node                                                                           | the runner   |
| `%%`        | a percent sign                                                                     | the runner   |
"""

from __future__ import annotations

import re

from runyard import errors
from runyard.model import fields

TRUNCATE, APPEND = "truncate", "append"  # a file of one run; one that several runs write to
_SYMBOL = re.compile(r"%(\d{0,2})(.?)", re.DOTALL)


def parse(value: object, where: str) -> str:
    path = fields.text(value, where, 4096, raw=True)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"{where}: {path!r} is not an absolute path", "start it with /")
    for width, symbol in _SYMBOL.findall(path):
        if symbol not in ("j", "A") and (width or symbol not in ("N", "%")):
            raise errors.InvalidInput(f"{where}: '%{width}{symbol}' is not known", "there are %j, %A, %N and %%")
    return path


def with_ids(path: str, run: int, array: int) -> str:
    """Fills in what the agent knows; the runner does the rest."""
    ids = {"j": str(run), "A": str(array)}
    return _SYMBOL.sub(lambda match: ids[match[2]].zfill(int(match[1] or 0)) if match[2] in ids else match[0], path)
