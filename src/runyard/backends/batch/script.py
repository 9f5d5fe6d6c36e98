"""The job script, from its template."""

from __future__ import annotations

import functools
import re
import shlex
from importlib import resources

_PLACE = re.compile(r"@(\w+)@")


def render(text: str, *, batch: str, directory: str, runner: str, python: str) -> str:
    values = {
        "batch": batch,
        "directory": shlex.quote(directory),
        "runner": shlex.quote(runner),
        "python": shlex.quote(python),
    }
    return _fill(_fill(text, {"common": template("common.sh").rstrip("\n")}), values)


@functools.cache
def template(name: str) -> str:
    """Of those that come with runyard."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _fill(text: str, values: dict[str, str]) -> str:
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)
