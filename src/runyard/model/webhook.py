"""A webhook: an address to which events of runs are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, spec_values
from runyard.model.declaration import Declared, field, read
from runyard.model.json_schema import text
from runyard.model.states import RunState
from runyard.model.values import Checked, Choice, Many, Text

LONGEST_URL = 2000
PATH = Text(4096, empty=True)


def _url(value: object, where: str) -> str:
    text, parts = fields.web_address(value, where, LONGEST_URL)
    if any(character.isspace() for character in text) or not f"{parts.path}{parts.query}".isascii():
        raise errors.InvalidInput(f"{where}: there is a blank in it, or a letter beyond ASCII", "write it like %20")
    if parts.username or parts.password or parts.fragment:
        raise errors.InvalidInput(f"{where}: has a user or something after #", "its secret belongs into secret_file")
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook(Declared):
    """Build it with `parse_table`, which checks everything that came from outside."""

    name: str  # of its table in the configuration
    url: str = field(Checked(_url, text()), missing='write url = "https://host/path"', help="Address to post to")
    secret_file: str = field(PATH, default="", help="What its messages are signed with; empty: they are not")
    states: tuple[str, ...] = field(Many(Choice(RunState)), default=(), help="Only these; none: all")
    projects: tuple[str, ...] = field(Many(spec_values.NAME), default=(), help="Only these; none: all")
    recipes: tuple[str, ...] = field(Many(spec_values.NAME), default=(), help="Only these; none: all")
    ca_file: str = field(PATH, default="", help="Authority of its certificate; empty: those of the system")

    @classmethod
    def parse_table(cls, name: str, value: object) -> Webhook:
        spec_values.name_text(name, "webhook")
        return cls(name=name, **read(cls, value, f"webhook.{name}"))

    def wants(self, event: Mapping[str, Any]) -> bool:
        return all(
            not wanted or event[name] in wanted
            for name, wanted in (("state", self.states), ("project", self.projects), ("recipe", self.recipes))
        )
