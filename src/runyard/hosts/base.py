"""The contract of a host: a machine on which commands run and whose file system holds run directories.

A scheduler's dialect says *what* to run; a host says *where*. Everything an agent does with a site's files goes through
these verbs, each of them one round trip however many runs it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

CHUNK = 1 << 20  # most bytes of one file that a scan brings
SCAN_BYTES = 16 << 20  # most bytes that one scan brings altogether


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a command left behind."""

    code: int | None  # None: no answer within the time; whether it did its work is unknown
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def ok(self) -> bool:
        return self.code == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What the asker has of one attempt already."""

    directory: str  # relative to the scanned root
    offsets: Mapping[str, int]  # of each append-only file of interest: how many bytes were taken
    version: str = ""  # of the status file, as the last scan gave it
    started: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What is new of one attempt."""

    directory: str
    started: bool
    version: str = ""
    status: dict[str, Any] | None = None  # only when it changed; None also when it cannot be read yet
    data: dict[str, bytes] = field(default_factory=dict)  # per file, from the known offset, at most CHUNK each
    sizes: dict[str, int] = field(default_factory=dict)  # of the files that exist


class Host(Protocol):
    """Promises: calls may come from any thread. A command that fails, is missing or does not answer is a Result, never
    an exception; files that cannot be written or read raise OSError."""

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        """Run a command; after `timeout` seconds it is killed and the code is None. A missing program is code 127."""
        ...

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        """Make `root` and the directories below it (0700), then write the files (0600), each replaced atomically."""
        ...

    def fetch(self, path: str) -> bytes:
        """The bytes of one small file; OSError when there is none."""
        ...

    def scan(self, root: str, known: Iterable[Known]) -> list[Seen]:
        """What changed below `root`, for all attempts at once; attempts without news are left out."""
        ...
