"""A site as it is described once: where its runs execute, and by which words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields, spec

YARD, AGENT = "yard", "agent"  # who serves a site: the yard's own process, or agents that dial in


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSpec:
    """Build it with `parse`, which checks everything that came from outside."""

    kind: str = "local"  # the backend: local, slurm, gridengine
    dir: str | None = None  # a directory that the compute nodes see; None: in the home of whoever serves the site
    ssh: tuple[str, ...] = ()  # login nodes, tried in order; none: commands run where the agent runs
    options: dict[str, str] = field(default_factory=dict)  # for the scheduler: account, partition, queue, …
    setup: tuple[str, ...] = ()  # shell lines that run on the compute node before each command
    env: dict[str, str] = field(default_factory=dict)  # defaults; a run's own variables win
    python: str | None = None  # interpreter for runners on the compute nodes
    served_by: str = YARD

    @classmethod
    def parse(cls, value: object) -> SiteSpec:
        given = fields.mapping(value, "site", _PARSERS)
        return cls(**{name: _PARSERS[name](item) for name, item in given.items() if item is not None})

    def to_json(self) -> dict[str, Any]:
        shown = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}

    def edited(self, changes: Mapping[str, Any]) -> SiteSpec:
        """Options and variables are changed one by one, and an empty value removes one; the rest is replaced."""
        whole = self.to_json()
        for name, value in fields.mapping(changes, "site", _PARSERS).items():
            if name in ("options", "env") and isinstance(value, Mapping):
                value = {key: item for key, item in {**whole[name], **value}.items() if item != ""}
            whole[name] = value
        return SiteSpec.parse(whole)


def _dir(value: object) -> str:
    path = fields.text(value, "dir", 4096)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"dir: {path!r} is not an absolute path", "start it with /")
    return path.rstrip("/") or "/"


def _logins(value: object) -> tuple[str, ...]:
    """A login that began with a dash would be an option to ssh."""
    logins = fields.texts(value, "ssh", 300)
    for login in logins:
        if not login or login.startswith("-") or any(character.isspace() for character in login):
            raise errors.InvalidInput(f"ssh: {login!r} is not a login", "write it like user@login.example.org")
    return tuple(logins)


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "kind": lambda value: spec.name_text(value, "kind"),
    "dir": _dir,
    "ssh": _logins,
    "options": spec.options_mapping,
    "setup": lambda value: tuple(fields.texts(value, "setup", 10_000)),
    "env": spec.env_mapping,
    "python": lambda value: fields.text(value, "python", 4096),
    "served_by": lambda value: fields.one_of(value, "served_by", (YARD, AGENT)),
}
