"""A run submitted as files, by users without access to the yard: the files and names in a drop box.

<drop box>/.NAME.part/          being copied; ignored
<drop box>/NAME.run/            submitted: renamed when it is complete
    run.json                    the run, as in a file for `runyard submit -f`
    code/  data/<folder>/       its code and data
    links.json                  symbolic links of these folders, which a drop box itself may not have
    files/<digest>              other files that run.json names by their digest
<drop box>/NAME.state/          its state and results: state.json, log, outputs/
<drop box>/NAME.cancel          an empty file: cancel it
"""

from __future__ import annotations

from typing import Any

from runyard import errors
from runyard.model.declaration import declared
from runyard.model.spec import RunSpec
from runyard.model.spec_values import name_text

HANDED_IN, STATE, CANCEL = ".run", ".state", ".cancel"
RUN, LINKS, CODE, DATA, FILES = "run.json", "links.json", "code", "data", "files"
PARTS = (RUN, LINKS, CODE, DATA, FILES)

STATE_FILE, LOG, OUTPUTS = "state.json", "log", "outputs"
REFUSED, WAITING = "refused", "waiting"  # states of a bundle that is no run, or not yet
LARGEST_TEXT = 16 << 20  # bytes of run.json and links.json


def check_name(name: str) -> str:
    return name_text(name, "bundle")


def partial(name: str) -> str:
    return f".{name}.part"


def check_fields(run: dict[str, Any]) -> None:
    """Raises InvalidInput for fields that need a token, and for paths of the machine itself."""
    for name, one in declared(RunSpec).items():
        if one.drop_box and run.get(name) is not None:
            raise errors.InvalidInput(f"run.json: {name} cannot be set from a drop box: {one.drop_box}", "leave it out")
    for item in _listed(run, "data"):
        if isinstance(item, dict) and item.get("path") is not None:
            raise errors.InvalidInput(
                f"run.json: data: {item['path']!r} is a path of the site, which a drop box may not use",
                "put the directory into the bundle, or let the program open it",
            )
    for item in _listed(run, "inputs"):
        if isinstance(item, dict) and item.get("secret") is not None:
            raise errors.InvalidInput(
                "run.json: inputs: a drop box may not use secrets", "put the file into the bundle"
            )


def _listed(run: dict[str, Any], field: str) -> list[Any]:
    value = run.get(field)
    return value if isinstance(value, list) else []
