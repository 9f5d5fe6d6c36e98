"""The files of a folder that is not a git checkout: all of them, except generated ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runyard import errors
from runyard.client.snapshot.ignore import Ignored

MADE_BY_TOOLS = frozenset({
    ".git", ".hg", ".svn", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    ".ipynb_checkpoints", "node_modules",
})  # fmt: skip
ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # what a folder with a Python of its own has in it, whatever its name


def list_files(root: Path, start: str, ignored: Ignored) -> Iterator[str]:
    """All entries at or below `start` that are not folders, relative to the root."""
    place = root / start
    if place.is_dir() and not place.is_symlink():
        yield from _below(root, "" if start == "." else start, ignored)
    else:
        yield start


def _below(root: Path, folder: str, ignored: Ignored) -> Iterator[str]:
    for entry in _entries(root / folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if ignored(path):
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield path
        elif not _is_made(entry):
            yield from _below(root, path, ignored)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        raise errors.InvalidInput(
            f"the folder {folder} cannot be read: {(error.strerror or '').lower()}", "change its permissions"
        ) from None


def _is_made(entry: os.DirEntry[str]) -> bool:
    return entry.name in MADE_BY_TOOLS or any(os.path.lexists(os.path.join(entry.path, name)) for name in ENVIRONMENT)
