"""This machine as a host, and the scheduler that answers here."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.hosts import scan, staging
from runyard.hosts.base import (
    CHUNK,
    SCAN_BYTES,
    BuildPlan,
    BuildResult,
    Cache,
    FoundOutput,
    Host,
    KnownFiles,
    Leaving,
    Listing,
    OutputSearch,
    Parcel,
    Result,
    Seen,
    SourceFile,
)
from runyard.hosts.far import (
    attempt_cleanup,
    building,
    cache_cleanup,
    checkpoints,
    commands,
    outputs,
    packages,
    scanning,
)
from runyard.hosts.far import files as far_files
from runyard.hosts.far.cache import CacheFiles

SCHEDULERS = {"slurm": ["sinfo", "--noheader"], "gridengine": ["qhost"]}
SCHEDULER_PATIENCE_S = 3.0


class LocalHost:
    pause = 0.0
    copies = False

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        code, stdout, stderr = commands.run([os.fsencode(word) for word in argv], input, timeout)
        return Result(code=code, stdout=stdout, stderr=stderr)

    def call(self, package: str, function: str, arguments: Mapping[str, Any]) -> Any:
        return packages.call(os.fsencode(package), function, dict(arguments))

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        named = ((os.fsencode(name), data) for name, data in files.items())
        far_files.put(os.fsencode(root), named, map(os.fsencode, directories))

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        far_files.install(os.fsencode(target), {os.fsencode(name): data for name, data in files.items()})

    def deliver(self, cache: Cache, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            _cache_files(cache).receive(parcel.digest, parcel.offset, parcel.pieces, _nobody_waits)

    def build(self, cache: Cache, plans: Sequence[BuildPlan]) -> BuildResult:
        found = building.build(_cache_files(cache), list(cache.at), staging.question(plans), _nobody_waits)
        return staging.answer(plans, found)

    def tidy(self, cache: Cache, limit: int, *, runs: str, living: Sequence[str] | None = None) -> int:
        alive = None if living is None else list(living)
        return cache_cleanup.tidy(_cache_files(cache), os.fsencode(runs), list(cache.at), alive, limit, _nobody_waits)

    def leave(self, cache: Cache, runs: str, leaving: Leaving) -> None:
        asked = {name: [what, seconds] for name, (what, seconds) in leaving.items()}
        attempt_cleanup.leave(_cache_files(cache), os.fsencode(runs), asked, _nobody_waits)

    def saved(self, cache: Cache, runs: str) -> list[int]:
        return checkpoints.saved(_cache_files(cache), os.fsencode(runs))

    def forget(self, runs: str, expired: Mapping[int, int]) -> None:
        checkpoints.forget(os.fsencode(runs), list(expired.items()), _nobody_waits)

    def fetch(self, path: str) -> bytes:
        return far_files.fetch(os.fsencode(path))

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        found = {}
        for path in paths:
            with contextlib.suppress(OSError):
                found[path] = self.fetch(path)
        return found

    def room(self, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {path: far_files.room(os.fsencode(path)) for path in paths}

    def filled(self, directories: Sequence[str]) -> set[str]:
        return {directory for directory in directories if far_files.has_entries(os.fsencode(directory))}

    def scan(self, root: str, known: Iterable[KnownFiles]) -> list[Seen]:
        found = scanning.scan(os.fsencode(root), scan.question(known), CHUNK, SCAN_BYTES)
        return [scan.answer(told, pieces) for told, pieces in found]

    def find(self, searches: Sequence[OutputSearch]) -> list[Listing]:
        return [listing(outputs.find(dataclasses.asdict(search), _nobody_waits)) for search in searches]

    @contextlib.contextmanager
    def borrow(self, sources: Sequence[SourceFile]) -> Iterator[dict[str, Path]]:
        yield {source.digest: Path(source.path) for source in sources}


def _cache_files(cache: Cache) -> CacheFiles:
    return CacheFiles(os.fsencode(cache.path), cache.agent, cache.lane)


def _nobody_waits() -> None:
    """Shows that the work continues."""


def listing(found: Iterable[dict[str, Any]]) -> Listing:
    """From the answer of `far.outputs`."""
    made = Listing()
    for told in found:
        if "note" in told:
            made.notes.append(told["note"])
        elif "torn" in told:
            made.torn.append(told["torn"])
        else:
            made.files.append(
                FoundOutput(**{name: told[name] for name in ("path", "size", "digest", "mode", "changed")})
            )
    return made


def make_directory(path: str) -> None:
    far_files.make_directory(os.fsencode(path))


def write_file(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole: a reader finds the old one or the new one, never a part. `durable`: on disk, too."""
    far_files.write(os.fsencode(path), data, durable)


def detect_scheduler(host: Host | None = None) -> str | None:
    """The batch scheduler that answers here, if any. An installed client without a cluster behind it does not count."""
    asked = host or LocalHost()
    for name, command in SCHEDULERS.items():
        if asked.run(command, timeout=SCHEDULER_PATIENCE_S).ok:
            return name
    return None


_: Host = LocalHost()
