"""The location of a drop box, and the operations on it. Paths are relative to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleFile:
    """A file of a bundle."""

    path: str
    source: Path | bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """The remote agent has another account. The permissions of the drop box decide who else can read it."""
        return 0o755 if self.executable else 0o644


class BoxStorage(Protocol):
    def deliver(self, partial: str, name: str, parts: Sequence[BundleFile]) -> None:
        """Write the parts into the folder `partial`, and rename it when it is complete. Raises Conflict."""
        ...

    def names(self) -> list[str]: ...

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Those of these files that exist."""
        ...

    def copy(self, path: str, target: Path) -> None:
        """A file that only grows: its new bytes are appended to the target. Raises NotFound."""
        ...

    def bring(self, paths: Sequence[str], root: str, target: Path) -> None:
        """Files below `root` to the same paths below the target; an interrupted transfer is continued."""
        ...

    def touch(self, name: str) -> None:
        """Make an empty file."""
        ...


def folders_of(paths: Sequence[str]) -> list[str]:
    """All that are needed for these files, each after the one it is in."""
    found = {path[:end] for path in paths for end, character in enumerate(path) if character == "/"}
    return sorted(found)
