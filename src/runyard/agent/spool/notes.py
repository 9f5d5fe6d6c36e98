"""The agent's records of bundles, writable by the agent alone. A submission is recorded first: an agent that is killed
meanwhile submits the same run again under the same key, which the yard recognizes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.hosts import local


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    name: str  # of the bundle
    inode: int  # of its directory: another inode is another bundle
    key: str  # of the run, and of the state beside the bundle
    generation: int = 0  # of that inode, if the file system reports it: inodes are soon reused
    owner: str = ""
    run: dict[str, Any] | None = None
    id: int | None = None
    refused: str = ""  # why
    cancelled: bool = False
    over: bool = False  # its final state was written

    @property
    def is_pending(self) -> bool:
        """It is to be submitted."""
        return self.id is None and not self.refused

    def is_of(self, inode: int, generation: int) -> bool:
        """Whether that directory is the bundle."""
        return inode == self.inode and (generation == self.generation or not (generation and self.generation))

    def evolve(self, **changes: Any) -> Note:
        return dataclasses.replace(self, **changes)


def new_key() -> str:
    return secrets.token_hex(16)


class Notes:
    """Records of one drop box. Threads may share it."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._lock = directory, threading.Lock()
        local.make_directory(os.fspath(directory))
        self._notes = {note.name: note for note in map(_read, sorted(directory.glob("*.json")))}

    def all(self) -> list[Note]:
        with self._lock:
            return list(self._notes.values())

    def get(self, name: str) -> Note | None:
        with self._lock:
            return self._notes.get(name)

    def keep(self, note: Note) -> None:
        with self._lock:
            data = json.dumps(dataclasses.asdict(note)).encode()
            local.write_file(os.fspath(self._path(note.name)), data, durable=True)
            self._notes[note.name] = note

    def drop(self, name: str) -> None:
        with self._lock, contextlib.suppress(FileNotFoundError):
            self._notes.pop(name, None)
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        """An untrusted name must not become a path."""
        return self._directory / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"


def _read(path: Path) -> Note:
    return Note(**json.loads(path.read_text(encoding="utf-8")))
