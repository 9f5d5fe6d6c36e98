"""Upload the files of output directories."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.bring.directory import FULL_DISK
from runyard.agent.link import Link
from runyard.hosts.base import CHUNK, FoundOutput, Host, Listing, OutputSearch, SourceFile
from runyard.model import globs
from runyard.model.digest import FOUND_S

ASK_AGAIN_S = FOUND_S / 6  # an upload that takes longer checks again what the yard has
TOGETHER = 64 << 20  # bytes that are uploaded together; a larger file is uploaded alone

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputDirectory:
    """The output directory of an attempt, and the files found there."""

    search: OutputSearch
    own: bool  # no other process writes there
    found: Listing = field(default_factory=Listing)

    @property
    def size(self) -> int:
        return sum(output.size for output in self.found.files)


@dataclass(kw_only=True, slots=True)
class Collected:
    files: list[dict[str, Any]] = field(default_factory=list)  # {path, size, digest, mode}
    notes: list[str] = field(default_factory=list)  # notices about files that were left out


def place_of(attempt: Attempt, directory: str) -> OutputDirectory:
    """`directory`: its output directory, see `Stager.output_directory`."""
    home = attempt.job.directory
    own = directory == f"{home}/outputs"
    # A directory that the user set may have files of others: only those that changed since the start are its own.
    marks = () if own else (f"{home}/started/runner.json", f"{home}/spec.json")
    named = globs.pattern(attempt.claim.spec.get("outputs", ["**"]))
    return OutputDirectory(search=OutputSearch(directory=directory, pattern=named, newer_than=marks), own=own)


def find(host: Host, places: Sequence[OutputDirectory]) -> list[OutputDirectory]:
    """The same places with their current files, in one round trip. Raises Unreachable."""
    listings = host.find([place.search for place in places])
    return [dataclasses.replace(place, found=found) for place, found in zip(places, listings, strict=True)]


def hand_over(host: Host, link: Link, places: Sequence[OutputDirectory], spool: Path | None = None) -> list[Collected]:
    """Upload what the yard does not have. Raises Unreachable, and the link's errors if the yard does not answer.

    `spool`: the files may still be written to, so they are copied there first, as long as they were when found.
    """
    refused = _send(host, link, places, spool)
    return [_collected(place.found, refused) for place in places]


def portions(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Groups of consecutive items that are uploaded together."""
    portion: list[T] = []
    held = 0
    for item in items:
        if portion and held + size(item) > TOGETHER:
            yield portion
            portion, held = [], 0
        portion.append(item)
        held += size(item)
    if portion:
        yield portion


def _send(host: Host, link: Link, places: Sequence[OutputDirectory], spool: Path | None) -> set[str]:
    """Returns the digests whose files have changed or disappeared."""
    sources, owned = _sources(places)
    missing = link.missing_blobs(sources) if sources else set()
    refused: set[str] = set()
    while missing:
        began = time.monotonic()
        refused |= _send_some(host, link, [sources[digest] for digest in sorted(missing)], owned, spool)
        took_long = time.monotonic() > began + ASK_AGAIN_S  # the yard may have deleted blobs since
        missing = link.missing_blobs(sources) - refused if took_long else set()
    return refused


def _send_some(
    host: Host, link: Link, sources: Sequence[SourceFile], owned: Collection[str], spool: Path | None
) -> set[str]:
    refused: set[str] = set()
    for portion in portions(sources, lambda source: source.size):
        with host.borrow(portion) as borrowed, _still(portion, borrowed, None if host.copies else spool) as brought:
            for source in portion:
                movable = host.copies or spool is not None or source.digest in owned
                if source.digest not in brought or not _put(link, source, brought[source.digest], movable):
                    refused.add(source.digest)
    return refused


@contextlib.contextmanager
def _still(sources: Sequence[SourceFile], found: dict[str, Path], spool: Path | None) -> Iterator[dict[str, Path]]:
    """Files that will not change: a linked file that is still written would no longer match its digest."""
    if spool is None:
        yield found
        return
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=spool) as folder:
        copies = {source.digest: Path(folder, source.digest.removeprefix("sha256:")) for source in sources}
        yield {
            source.digest: copies[source.digest]
            for source in sources
            if source.digest in found and _copied(found[source.digest], source, copies[source.digest])
        }


def _copied(path: Path, source: SourceFile, target: Path) -> bool:
    """A file that only grew is unchanged up to its former size."""
    seen, left = hashlib.sha256(), source.size
    try:
        with path.open("rb") as file, target.open("wb") as copy:
            while left and (chunk := file.read(min(CHUNK, left))):
                seen.update(chunk)
                copy.write(chunk)
                left -= len(chunk)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise errors.DiskFull(f"no disk space in {target.parent} for the upload of outputs") from error
        return False
    return f"sha256:{seen.hexdigest()}" == source.digest


def _sources(places: Sequence[OutputDirectory]) -> tuple[dict[str, SourceFile], set[str]]:
    """One file for each digest; and the digests of files that will not change."""
    sources: dict[str, SourceFile] = {}
    owned: set[str] = set()
    for place in places:
        for output in place.found.files:
            path = f"{place.search.directory}/{output.path}"
            sources[output.digest] = SourceFile(path=path, size=output.size, digest=output.digest)
            (owned.add if place.own else owned.discard)(output.digest)
    return sources, owned


def _put(link: Link, source: SourceFile, path: Path, movable: bool) -> bool:
    """False if the file has changed."""
    try:
        link.put_blob(source.digest, path, movable)
    except (errors.InvalidInput, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL_DISK:  # of a yard in this process
            raise errors.DiskFull from error
        return False
    return True


def _collected(found: Listing, refused: set[str]) -> Collected:
    changed = [output.path for output in found.files if output.digest in refused]
    return Collected(
        files=[_told(output) for output in found.files if output.digest not in refused],
        notes=[*found.notes, *(f"output left out: {path} changed while it was read" for path in changed)],
    )


def _told(output: FoundOutput) -> dict[str, Any]:
    return {"path": output.path, "size": output.size, "digest": output.digest, "mode": output.mode}
