"""The mirror: a directory, most often on a file server, in which people find results as plain files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, spec

FIELDS = ("dir", "failed", "projects")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror:
    """Build it with `parse`, which checks everything that came from outside."""

    dir: str
    failed: bool = False  # failed runs too, in a folder of their own
    projects: tuple[str, ...] = ()  # only these; none: all

    @classmethod
    def parse(cls, value: object) -> Mirror:
        given = fields.mapping(value, "mirror", FIELDS)
        return cls(
            dir=_directory(given),
            failed=fields.boolean(given.get("failed", False), "mirror.failed"),
            projects=tuple(
                spec.name_text(item, "mirror.projects")
                for item in fields.texts(given.get("projects", []), "mirror.projects", 200)
            ),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _directory(given: Mapping[str, Any]) -> str:
    path = fields.text(given.get("dir", ""), "mirror.dir", 4096)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"mirror.dir: {path!r} is not an absolute path", "start it with /")
    return path.rstrip("/") or "/"
