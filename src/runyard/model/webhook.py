"""A webhook: an address that is told of what happens to runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, spec
from runyard.model.states import RunState

FIELDS = ("url", "secret_file", "states", "projects", "recipes", "ca_file")
LONGEST_URL = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook:
    """Build it with `parse`, which checks everything that came from outside."""

    name: str  # of its table in the configuration
    url: str
    secret_file: str = ""  # what its messages are signed with; '': they are not
    states: tuple[str, ...] = ()  # only these; none: all
    projects: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    ca_file: str = ""

    @classmethod
    def parse(cls, name: str, value: object) -> Webhook:
        where = f"webhook.{name}"
        spec.name_text(name, "webhook")
        given = fields.mapping(value, where, FIELDS)
        return cls(
            name=name,
            url=_url(given.get("url"), f"{where}.url"),
            secret_file=fields.text(given.get("secret_file", ""), f"{where}.secret_file", 4096, empty=True),
            states=tuple(fields.one_of(item, f"{where}.states", list(RunState)) for item in _list(given, "states")),
            projects=tuple(spec.name_text(item, f"{where}.projects") for item in _list(given, "projects")),
            recipes=tuple(spec.name_text(item, f"{where}.recipes") for item in _list(given, "recipes")),
            ca_file=fields.text(given.get("ca_file", ""), f"{where}.ca_file", 4096, empty=True),
        )

    def wants(self, event: Mapping[str, Any]) -> bool:
        return all(
            not wanted or event[field] in wanted
            for field, wanted in (("state", self.states), ("project", self.projects), ("recipe", self.recipes))
        )


def _list(given: Mapping[str, Any], field: str) -> list[str]:
    return fields.texts(given.get(field, []), f"webhook.{field}", 200)


def _url(value: object, where: str) -> str:
    text, parts = fields.web_address(value, where, LONGEST_URL)
    if any(character.isspace() for character in text) or not f"{parts.path}{parts.query}".isascii():
        raise errors.InvalidInput(f"{where}: there is a blank in it, or a letter beyond ASCII", "write it like %20")
    if parts.username or parts.password or parts.fragment:
        raise errors.InvalidInput(f"{where}: has a user or something after #", "its secret belongs into secret_file")
    return text
