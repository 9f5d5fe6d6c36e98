"""A drop box that is a folder here: a shared drive, or a portable disk."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from runyard import errors
from runyard.client.drop_box.storage import BundleFile, folders_of


class FolderStorage:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def deliver(self, partial: str, name: str, parts: Sequence[BundleFile]) -> None:
        self._check()
        below = self._path / partial
        for folder in (below, *(below / name for name in folders_of([part.path for part in parts]))):
            folder.mkdir()
            _change_mode(folder, 0o755)
        for part in parts:
            _write(part, below / part.path)
        try:
            os.rename(below, self._path / name)
        except OSError:
            shutil.rmtree(below)
            raise errors.Conflict(f"{self._path} has a bundle {name} already", "choose another name") from None

    def names(self) -> list[str]:
        self._check()
        return sorted(os.listdir(self._path))

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        found = {}
        for path in paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found[path] = (self._path / path).read_bytes()
        return found

    def copy(self, path: str, target: Path) -> None:
        try:
            with (self._path / path).open("rb") as source, target.open("ab") as copied:
                source.seek(copied.tell())
                shutil.copyfileobj(source, copied)
        except FileNotFoundError:
            raise errors.NotFound(f"{self._path} has no {path}") from None

    def bring(self, paths: Sequence[str], root: str, target: Path) -> None:
        for path in paths:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._path / root / path, target / path)

    def touch(self, name: str) -> None:
        (self._path / name).touch()

    def _check(self) -> None:
        if not self._path.is_dir():
            raise errors.InvalidInput(f"--via: there is no folder {self._path}", "name a folder, or sftp://host/folder")


def _write(part: BundleFile, target: Path) -> None:
    if isinstance(part.source, bytes):
        target.write_bytes(part.source)
    else:
        shutil.copyfile(part.source, target)
    _change_mode(target, part.mode)


def _change_mode(path: Path, mode: int) -> None:
    """Not every file system has modes."""
    with contextlib.suppress(OSError):
        path.chmod(mode)
