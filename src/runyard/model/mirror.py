"""The mirror: a directory, most often on a file server, in which people find results as plain files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runyard.model import spec_values
from runyard.model.declaration import Declared, field
from runyard.model.values import Directory, Flag, Many


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror(Declared):
    """Build it with `parse`, which checks everything that came from outside."""

    place: ClassVar[str] = "mirror"

    dir: str = field(Directory(), missing='name one: dir = "/srv/results"', help="Absolute path")
    failed: bool = field(Flag(), default=False, help="Failed runs too, in a folder of their own")
    projects: tuple[str, ...] = field(Many(spec_values.NAME), default=(), help="Only these; none: all")
