"""A secret that runs may name and never see: the agent shows it to a web server when it fetches their inputs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runyard import errors
from runyard.model import fields
from runyard.model.declaration import Declared, field, read
from runyard.model.json_schema import text
from runyard.model.values import Checked, Many, Text

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?|\[[0-9a-f:]+\](:\d{1,5})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,30}")


def _host(value: object, where: str) -> str:
    host = fields.text(value, where, 300).lower()
    if not _HOST.fullmatch(host):
        raise errors.InvalidInput(f"{where}: {value!r} is no host", "write it like zenodo.org or host:8443")
    return host


def _scheme(value: object, where: str) -> str:
    scheme = fields.text(value, where, 31)
    if not _SCHEME.fullmatch(scheme):
        raise errors.InvalidInput(f"{where}: {scheme!r} is no word", "write it like Bearer or Token")
    return scheme


@dataclass(frozen=True, kw_only=True, slots=True)
class Secret(Declared):
    name: str
    file: str = field(Text(4096), missing='write file = "/path"', help="Which no other user may read")
    # The hosts are not left to runs: a user could have it sent to a server of his own.
    hosts: tuple[str, ...] = field(
        Many(Checked(_host, text()), least=1), missing='name those it is for: hosts = ["zenodo.org"]',
        help="Those it is sent to",
    )  # fmt: skip
    scheme: str = field(Checked(_scheme, text()), default="Bearer", help="`Authorization: <scheme> <secret>`")

    @classmethod
    def parse_table(cls, name: str, value: object) -> Secret:
        fields.text(name, "secrets", 100)
        return cls(name=name, **read(cls, value, f"secrets.{name}"))
