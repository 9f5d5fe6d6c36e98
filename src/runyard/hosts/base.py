"""The contract of a host: a machine on which commands run and whose file system holds run directories.

A scheduler's dialect says *what* to run; a host says *where*. Everything an agent does with a site's files goes through
these verbs, each of them one round trip however many runs it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CHUNK = 1 << 20  # most bytes of one file that a scan brings
SCAN_BYTES = 16 << 20  # most bytes that one scan brings altogether
MOST_FILES = 50_000  # of one search


class Unreachable(ConnectionError):
    """The host does not answer. Nothing is said about its files; what was asked may have been done or not."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Which files below a directory are outputs."""

    directory: str
    pattern: str  # a regular expression for whole paths below the directory
    newer_than: tuple[str, ...] = ()  # only what changed since the first of these files that exists; none: everything
    most: int = MOST_FILES


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """A regular file that was found."""

    path: str  # below the directory of the search
    size: int
    digest: str  # sha256:…
    mode: int


@dataclass(kw_only=True, slots=True)
class Listing:
    files: list[Output] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was left out, for people


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file whose bytes are wanted as they were when it was described."""

    path: str  # absolute
    size: int
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    """Bytes that are wanted on the host, at one place or at several."""

    digest: str
    targets: tuple[str, ...]  # absolute paths
    read: Callable[[], Iterable[bytes]] = field(repr=False)  # the bytes, piece by piece, when their turn comes


class Host(Protocol):
    """Promises: calls may come from any thread, and each has its own time-out. A command that fails, is missing or does
    not answer is a Result, never an exception; files that cannot be written or read raise OSError, and a host that does
    not answer Unreachable."""

    pause: float  # seconds that are better left between two scans
    copies: bool  # what `borrow` gives is a copy, so that nobody will change it

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        """Run a command; after `timeout` seconds it is killed and the code is None. A missing program is code 127."""
        ...

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        """Make `root` and the directories below it (0700), then write the files (0600), each replaced atomically."""
        ...

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        """Make the directory `target` with these files appear at once, unless it is there; then it is made whole."""
        ...

    def deliver(self, parcels: Sequence[Parcel]) -> None:
        """Make the files of the parcels, and the directories that they need. A file appears whole, checked and without
        permission to write (0400). Nothing is held in memory but a piece. What reading them raises is passed on."""
        ...

    def fetch(self, path: str) -> bytes:
        """The bytes of one small file; OSError when there is none."""
        ...

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The bytes of those small files that can be read."""
        ...

    def filled(self, directories: Sequence[str]) -> set[str]:
        """Those of the directories that hold anything."""
        ...

    def scan(self, root: str, known: Iterable[Known]) -> list[Seen]:
        """What changed below `root`, for all attempts at once; attempts without news are left out."""
        ...

    def find(self, searches: Sequence[Search]) -> list[Listing]:
        """What runs left behind, one listing for each search. Symbolic links are neither followed nor listed."""
        ...

    def borrow(self, sources: Sequence[Source]) -> AbstractContextManager[dict[str, Path]]:
        """Files on this machine with the bytes of the sources, by digest, as long as the context is open. One whose
        bytes cannot be had any more is left out. A transfer that was cut goes on where it ended, even after a restart.
        """
        ...
