"""Who may do what."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from runyard.model.nodes import EVERYBODY, Limits


class Role(enum.StrEnum):
    ADMIN = "admin"  # everything
    MEMBER = "member"  # submits; changes own runs; sees all
    VIEWER = "viewer"  # sees all, changes nothing
    AGENT = "agent"  # serves one site, and nothing else
    CALLER = "caller"  # another program: starts recipes that are named, sees what became of its requests


NETWORK = "trusted-network"  # whoever asks without a token from a network that is trusted


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who is asking: the holder of a token."""

    name: str
    role: Role
    site: str | None = None  # of an agent
    limits: Limits = EVERYBODY  # of an agent: whose runs it may take
    recipes: tuple[str, ...] = ()  # of a caller
    any_recipe: bool = False  # every recipe that has no list of callers

    def may_change(self, owner: str) -> bool:
        return self.role == Role.ADMIN or (self.role == Role.MEMBER and self.name == owner)

    @property
    def sees_all(self) -> bool:
        return self.role != Role.CALLER

    def may_see(self, owner: str) -> bool:
        return self.sees_all or self.name == owner
