"""What a recipe tells the program that asked for it: fields of the run, values from its files, and the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields, globs, units

DEFAULT_FIELDS = ("id", "state", "reason", "detail", "exit_code")
KNOWN_FIELDS = (
    *DEFAULT_FIELDS, "recipe", "params", "created_at", "started_at", "ended_at", "wall_time", "cpu_time", "peak_memory",
)  # fmt: skip
RESERVED = ("error", "outputs", "runs")
INLINE = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """Build it with `parse`, which checks everything that came from outside."""

    fields: tuple[str, ...] = DEFAULT_FIELDS
    values: dict[str, str] = field(default_factory=dict)  # name -> `file.json` or `file.json:path.inside`
    files: tuple[str, ...] = ("**",)  # globs of the outputs that are told
    inline: int = INLINE  # bytes: larger files are links

    @classmethod
    def parse(cls, value: object) -> Reply:
        given = fields.mapping(value, "reply", ("fields", "values", "files", "inline"))
        checked = {name: _CHECKS[name](item) for name, item in given.items() if item is not None}
        return cls(**checked)

    def to_json(self) -> dict[str, Any]:
        """The shortest mapping that parses to the same."""
        plain: dict[str, Any] = {
            "fields": list(self.fields), "values": self.values, "files": list(self.files), "inline": self.inline
        }  # fmt: skip
        usual = {"fields": list(DEFAULT_FIELDS), "values": {}, "files": ["**"], "inline": INLINE}
        return {name: item for name, item in plain.items() if item != usual[name]}


def _fields(value: object) -> tuple[str, ...]:
    names = fields.texts(value, "reply.fields", 100)
    return tuple(dict.fromkeys(fields.one_of(name, "reply.fields", KNOWN_FIELDS) for name in names))


def _values(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput("reply.values: must be a mapping of names to files", "such as scores: metadata.json")
    for name in value:
        if name in KNOWN_FIELDS or name in RESERVED:
            raise errors.InvalidInput(f"reply.values: {name!r} is a name of runyard's own", "choose another one")
    return {
        fields.text(name, "reply.values", 200): fields.text(place, f"reply.values.{name}", 1000)
        for name, place in value.items()
    }


def _inline(value: object) -> int:
    return 0 if value == 0 else units.parse_size(value, "reply.inline")


_CHECKS: dict[str, Any] = {
    "fields": _fields,
    "values": _values,
    "files": lambda value: globs.parse(value, "reply.files"),
    "inline": _inline,
}
