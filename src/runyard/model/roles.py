"""Roles and their permissions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from runyard.model.declaration import Declared, field
from runyard.model.nodes import EVERYBODY, Limits
from runyard.model.spec_values import NAME
from runyard.model.values import Choice, Many, Part


class Role(enum.StrEnum):
    ADMIN = "admin"  # everything
    MEMBER = "member"  # submits; changes own runs; sees all
    VIEWER = "viewer"  # sees all, changes nothing
    AGENT = "agent"  # serves one site, and nothing else
    CALLER = "caller"  # another program: starts the named recipes, sees its own requests


NETWORK = "trusted-network"  # requests without a token from a trusted network


@dataclass(frozen=True, kw_only=True, slots=True)
class NewToken(Declared):
    """A token to be created."""

    place: ClassVar[str] = "token"
    root: ClassVar[bool] = True

    name: str = field(NAME, help="Its owner")
    role: Role = field(Choice(Role), help="What the token allows")
    site: str | None = field(NAME, default=None, help="For an agent: the site it serves")
    recipes: tuple[str, ...] = field(Many(NAME), default=(), help="For a caller: the recipes it may start")
    limits: Limits = field(Part(Limits), default=EVERYBODY, help="For an agent: which runs it may accept")


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The client that sent a request: the owner of a token."""

    name: str
    role: Role
    site: str | None = None  # of an agent
    limits: Limits = EVERYBODY  # of an agent: which runs it may accept
    recipes: tuple[str, ...] = ()  # of a caller
    any_recipe: bool = False  # every recipe that has no list of callers

    def may_change(self, owner: str) -> bool:
        return self.role == Role.ADMIN or (self.role == Role.MEMBER and self.name == owner)

    @property
    def sees_all(self) -> bool:
        return self.role != Role.CALLER

    def may_see(self, owner: str) -> bool:
        return self.sees_all or self.name == owner
