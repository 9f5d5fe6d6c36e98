"""What a recipe tells the program that asked for it: fields of the run, values from its files, and the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model import fields, globs
from runyard.model.declaration import Declared, field
from runyard.model.json_schema import ANYTHING, TEXTS
from runyard.model.values import Checked, Choice, Many, Size

DEFAULT_FIELDS = ("id", "state", "reason", "detail", "exit_code")
KNOWN_FIELDS = (
    *DEFAULT_FIELDS, "recipe", "params", "created_at", "started_at", "ended_at", "wall_time", "cpu_time", "peak_memory",
)  # fmt: skip
RESERVED = ("error", "outputs", "runs")
INLINE = 1 << 20


def _values(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of names to files", "such as scores: metadata.json")
    for name in value:
        if name in KNOWN_FIELDS or name in RESERVED:
            raise errors.InvalidInput(f"{where}: {name!r} is a name of runyard's own", "choose another one")
    return {fields.text(name, where, 200): fields.text(place, f"{where}.{name}", 1000) for name, place in value.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply(Declared):
    """Build it with `parse`, which checks everything that came from outside."""

    place: ClassVar[str] = "reply"
    brief: ClassVar[bool] = True
    about: ClassVar[str] = "What a program that sent its request through the broker receives"

    fields: tuple[str, ...] = field(
        Many(Choice(KNOWN_FIELDS), make=lambda names: tuple(dict.fromkeys(names))), default=DEFAULT_FIELDS,
        help="Fields of the run",
    )  # fmt: skip
    values: dict[str, str] = field(
        Checked(_values, ANYTHING), make=dict,
        help="Values from JSON files of the outputs, as file.json or file.json:a.b",
    )  # fmt: skip
    files: tuple[str, ...] = field(Checked(globs.parse, TEXTS), default=("**",), help="Globs of the outputs to list")
    inline: int = field(
        Size(zero=True), default=INLINE, help="Files up to this size are in the reply; larger ones are links"
    )
