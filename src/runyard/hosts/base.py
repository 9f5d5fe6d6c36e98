"""The contract of a host: a machine on which commands run and whose file system holds run directories.

A scheduler's dialect defines *what* to run; a host defines *where*. Everything an agent does with a site's files uses
these methods, each of them one round trip for any number of runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CHUNK = 1 << 20  # most bytes of one file in a scan
SCAN_BYTES = 16 << 20  # most bytes in one scan
MOST_FILES = 50_000  # of one search


Leaving = Mapping[str, tuple[str, int | None]]  # attempts, each with what stays (model.keep) and for how many seconds


class Unreachable(ConnectionError):
    """The host does not answer. This says nothing about its files; the request may have been executed or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The result of a command."""

    code: int | None  # None: no answer within the time; whether it did its work is unknown
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def ok(self) -> bool:
        return self.code == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFiles:
    """What the caller already has of one attempt."""

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
class OutputSearch:
    """Which files below a directory are outputs."""

    directory: str
    pattern: str  # a regular expression for whole paths below the directory
    newer_than: tuple[str, ...] = ()  # only what changed since the first of these files that exists; none: everything
    most: int = MOST_FILES
    whole: bool = False  # none that was written to while it was read
    known: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)  # size, time and digest: not read again


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundOutput:
    """A regular file that was found."""

    path: str  # below the directory of the search
    size: int
    digest: str  # sha256:…
    mode: int
    changed: int = 0  # when, by the file system; 0: so lately that it may have changed since without another time

    @property
    def known(self) -> tuple[int, int, str]:
        """Identifies the file in another search; see `OutputSearch.known`."""
        return self.size, self.changed, self.digest


@dataclass(kw_only=True, slots=True)
class Listing:
    files: list[FoundOutput] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)  # of a search for whole files: those that were being written to
    notes: list[str] = field(default_factory=list)  # what was left out, for people


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A file whose bytes are needed as they were when it was described."""

    path: str  # absolute
    size: int
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """The cache of a host for code, data and inputs. Several agents may use one."""

    path: str  # absolute
    agent: str  # who asks
    lane: int = 0  # of several transfers that one agent has at a time, each goes on with its own parts
    at: tuple[int, int] = (0, 0)  # later questions of one agent have a greater number


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    """Bytes for the cache."""

    digest: str
    offset: int = 0  # where in the file they begin: what is before is there already
    pieces: Iterable[bytes] = field(repr=False)  # fetched when their turn comes


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFolder:
    """A folder to read from: a tree from the cache, or a path on the host. One of the two."""

    to: str  # its name among the attempt's data
    tree: str | None = None
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildPlan:
    """What is to be made in an attempt's directory before it starts."""

    name: str  # of the attempt in the cache: `<run>-a<N>`
    directory: str  # absolute, and there
    code: str | None = None  # the tree to copy
    data: tuple[DataFolder, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()  # digest, and where it goes
    checkpoint: str | None = None  # the tree that takes the place of what the run's checkpoints are there
    afresh: bool = False  # nothing does: what lies there is not to be gone on from

    @property
    def sources(self) -> set[str]:
        """Digests of the files that it needs."""
        trees = {folder.tree for folder in self.data if folder.tree is not None}
        single = {digest for digest in (self.code, self.checkpoint) if digest is not None}
        return trees | single | {digest for digest, _ in self.inputs}


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A file that the cache lacks."""

    digest: str
    size: int | None  # None: only the yard knows
    held: int  # bytes of it that came already


@dataclass(kw_only=True, slots=True)
class BuildResult:
    """The result of plans. A plan without a problem and without missing files is done."""

    missing: dict[str, list[MissingFile]] = field(default_factory=dict)  # by source
    problems: dict[str, OSError] = field(default_factory=dict)  # by the plan's name

    def is_done(self, plan: BuildPlan) -> bool:
        return plan.name not in self.problems and not plan.sources.intersection(self.missing)


class Host(Protocol):
    """Promises: calls may come from any thread, and each has its own time-out. A command that fails, is missing or does
    not answer is a Result, never an exception; files that cannot be written or read raise OSError, and a host that does
    not answer Unreachable."""

    pause: float  # seconds that are better left between two scans
    copies: bool  # `borrow` returns copies, which do not change

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        """Run a command; after `timeout` seconds it is killed and the code is None. A missing program is code 127."""
        ...

    def call(self, package: str, function: str, arguments: Mapping[str, Any]) -> Any:
        """Call `module.name` of a Python package that was installed at that path: arguments and answer are JSON. A
        missing package is an OSError."""
        ...

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        """Make `root` and the directories below it (0700), then write the files (0600), each replaced atomically."""
        ...

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        """Make the directory `target` with these files appear at once; an existing one is completed."""
        ...

    def deliver(self, cache: Cache, parcels: Iterable[Parcel]) -> None:
        """Put them into the cache, where each appears complete and checked. Only one piece is held in memory. Errors of
        the source are passed on; received bytes are kept, and the file is continued another time."""
        ...

    def build(self, cache: Cache, plans: Sequence[BuildPlan]) -> BuildResult:
        """Make what attempts need, as far as the cache has it; missing files are reported. May be repeated at any
        time."""
        ...

    def tidy(self, cache: Cache, limit: int, *, runs: str, living: Sequence[str] | None = None) -> int:
        """Delete the least recently used entries of the cache, until it has at most `limit` bytes; never those that an
        attempt needs. `living` names all attempts that this agent has: copies for its other attempts, below the
        directory `runs`, are deleted as well. Returns the remaining bytes."""
        ...

    def leave(self, cache: Cache, runs: str, leaving: Leaving) -> None:
        """Delete the directories of these attempts below `runs`, except what is to be kept, and of others what has been
        kept long enough. An attempt that still writes is tried again another time."""
        ...

    def saved(self, cache: Cache, runs: str) -> list[int]:
        """Runs that have a directory for checkpoints below `runs`; none if this was called within the last hour."""
        ...

    def forget(self, runs: str, expired: Mapping[int, int]) -> None:
        """Delete the checkpoints of these runs, unless there is a newer attempt than the named one."""
        ...

    def fetch(self, path: str) -> bytes:
        """The bytes of one small file; OSError when there is none."""
        ...

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The bytes of those small files that can be read."""
        ...

    def room(self, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Free and total bytes of the disk of each path; for a path that does not exist yet, those of its future parent
        directory."""
        ...

    def filled(self, directories: Sequence[str]) -> set[str]:
        """Those of the directories that hold anything."""
        ...

    def scan(self, root: str, known: Iterable[KnownFiles]) -> list[Seen]:
        """Changes below `root`, for all attempts at once; unchanged attempts are left out."""
        ...

    def find(self, searches: Sequence[OutputSearch]) -> list[Listing]:
        """Outputs of runs, one list for each search. Symbolic links are neither followed nor listed."""
        ...

    def borrow(self, sources: Sequence[SourceFile]) -> AbstractContextManager[dict[str, Path]]:
        """Files on this machine with the bytes of the sources, by digest, as long as the context is open. A file
        that no longer has these bytes is left out. An interrupted transfer is continued, even after a restart.
        """
        ...
