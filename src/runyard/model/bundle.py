"""A run handed in as files, by people who have no yard and no token: what lies in a drop box, and under which names.

<drop box>/.NAME.part/          on its way; nobody looks at it
<drop box>/NAME.run/            handed in: renamed when it is complete
    run.json                    the run, as in a file for `runyard submit -f`
    code/  data/<folder>/       what it brings along
    links.json                  symbolic links of these folders, which a drop box itself may not have
    files/<digest>              other files that run.json names by their digest
<drop box>/NAME.state/          what became of it: state.json, log, outputs/
<drop box>/NAME.cancel          an empty file: end it
"""

from __future__ import annotations

from typing import Any

from runyard import errors
from runyard.model.spec import name_text

HANDED_IN, STATE, CANCEL = ".run", ".state", ".cancel"
RUN, LINKS, CODE, DATA, FILES = "run.json", "links.json", "code", "data", "files"
PARTS = (RUN, LINKS, CODE, DATA, FILES)

STATE_FILE, LOG, OUTPUTS = "state.json", "log", "outputs"
REFUSED, WAITING = "refused", "waiting"  # states of a bundle that is no run, or not yet
LARGEST_TEXT = 16 << 20  # bytes of run.json and links.json

# What a run in a drop box may not say, and why.
_NOT_FROM_HERE = {
    "idempotency_key": "the bundle's own name does that",
    "origin": "it comes from a drop box",
    "cwd": "it works in the code that it brings along",
    "stdout": "its log is beside the bundle",
    "stderr": "its log is beside the bundle",
}


def check_name(name: str) -> str:
    return name_text(name, "bundle")


def partial(name: str) -> str:
    return f".{name}.part"


def check_fields(run: dict[str, Any]) -> None:
    """Raises InvalidInput for what only somebody with a token may ask for, and for paths of the machine itself."""
    for field, reason in _NOT_FROM_HERE.items():
        if run.get(field) is not None:
            raise errors.InvalidInput(f"run.json: {field} cannot be set from a drop box: {reason}", "leave it out")
    for item in _listed(run, "data"):
        if isinstance(item, dict) and item.get("path") is not None:
            raise errors.InvalidInput(
                f"run.json: data: {item['path']!r} is a path of the site, and a drop box knows none",
                "bring the folder along, or have the program open it",
            )
    for item in _listed(run, "inputs"):
        if isinstance(item, dict) and item.get("secret") is not None:
            raise errors.InvalidInput("run.json: inputs: a drop box may not use secrets", "bring the file along")


def _listed(run: dict[str, Any], field: str) -> list[Any]:
    value = run.get(field)
    return value if isinstance(value, list) else []
