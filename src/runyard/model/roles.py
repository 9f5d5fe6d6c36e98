"""Who may do what."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Role(enum.StrEnum):
    ADMIN = "admin"  # everything
    MEMBER = "member"  # submits; changes own runs; sees all
    VIEWER = "viewer"  # sees all, changes nothing
    AGENT = "agent"  # serves one site, and nothing else


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who is asking: the holder of a token."""

    name: str
    role: Role
    site: str | None = None  # of an agent

    def may_change(self, owner: str) -> bool:
        return self.role == Role.ADMIN or (self.role == Role.MEMBER and self.name == owner)
