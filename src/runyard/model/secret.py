"""A secret that runs may name and never see: the agent shows it to a web server when it fetches their inputs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runyard import errors
from runyard.model import fields

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?|\[[0-9a-f:]+\](:\d{1,5})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,30}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Secret:
    name: str
    file: str  # which nobody else may read
    hosts: tuple[str, ...]  # that it is shown to: whoever may submit could have it sent to a server of his own
    scheme: str = "Bearer"  # `Authorization: <scheme> <secret>`

    @classmethod
    def parse(cls, name: str, value: object) -> Secret:
        where = f"secrets.{name}"
        given = fields.mapping(value, where, ("file", "hosts", "scheme"))
        hosts = tuple(_host(item, where) for item in fields.texts(given.get("hosts") or [], f"{where}.hosts", 300))
        if not hosts:
            raise errors.InvalidInput(f"{where}: it says no hosts", 'name those it is for: hosts = ["zenodo.org"]')
        scheme = fields.text(given.get("scheme", "Bearer"), f"{where}.scheme", 31)
        if not _SCHEME.fullmatch(scheme):
            raise errors.InvalidInput(f"{where}.scheme: {scheme!r} is no word", "write it like Bearer or Token")
        return cls(
            name=fields.text(name, where, 100), file=fields.text(given.get("file"), f"{where}.file", 4096),
            hosts=hosts, scheme=scheme,
        )  # fmt: skip


def _host(text: str, where: str) -> str:
    if not _HOST.fullmatch(text.lower()):
        raise errors.InvalidInput(f"{where}.hosts: {text!r} is no host", "write it like zenodo.org or host:8443")
    return text.lower()
