"""Where a drop box is, and the little that is done there. Paths are relative to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A file of a bundle."""

    path: str
    source: Path | bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """The agent over there has another account. Who can enter the drop box decides who else reads it."""
        return 0o755 if self.executable else 0o644


class Place(Protocol):
    def deliver(self, partial: str, name: str, parts: Sequence[Part]) -> None:
        """Write the parts into the folder `partial`, and rename it when it is complete. Raises Conflict."""
        ...

    def names(self) -> list[str]: ...

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Those of these files that exist."""
        ...

    def copy(self, path: str, target: Path) -> None:
        """A file that only grows: what is new of it is added to the target. Raises NotFound."""
        ...

    def bring(self, paths: Sequence[str], root: str, target: Path) -> None:
        """Files below `root` to the same places below the target; what was cut goes on where it ended."""
        ...

    def touch(self, name: str) -> None:
        """Make an empty file."""
        ...


def folders_of(paths: Sequence[str]) -> list[str]:
    """All that are needed for these files, each after the one it is in."""
    found = {path[:end] for path in paths for end, character in enumerate(path) if character == "/"}
    return sorted(found)
