"""Bring back what runs left in their output directories."""

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
from runyard.agent.link import Link
from runyard.agent.stage import FULL_DISK
from runyard.hosts.base import CHUNK, Host, Listing, Output, Search, Source
from runyard.model.digest import FOUND_S

ASK_AGAIN_S = FOUND_S / 6  # after files have travelled for so long
TOGETHER = 64 << 20  # bytes that are on their way at once; a larger file travels alone

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an attempt leaves its outputs, and what was found there."""

    search: Search
    own: bool  # nobody else writes there
    found: Listing = field(default_factory=Listing)

    @property
    def size(self) -> int:
        return sum(output.size for output in self.found.files)


@dataclass(kw_only=True, slots=True)
class Collected:
    files: list[dict[str, Any]] = field(default_factory=list)  # {path, size, digest, mode}
    notes: list[str] = field(default_factory=list)  # what was left out, for people


def find(host: Host, places: Sequence[Place]) -> list[Place]:
    """The same places with what is there now, in one round trip. Raises Unreachable."""
    listings = host.find([place.search for place in places])
    return [dataclasses.replace(place, found=found) for place, found in zip(places, listings, strict=True)]


def hand_over(host: Host, link: Link, places: Sequence[Place], spool: Path | None = None) -> list[Collected]:
    """Give the yard what it does not have. Raises Unreachable, and what the link raises for a yard that is away.

    `spool`: the files may still be written to, so they are copied there first, as long as they were when found.
    """
    refused = _send(host, link, places, spool)
    return [_collected(place.found, refused) for place in places]


def portions(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Consecutive ones that may be on their way together."""
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


def _send(host: Host, link: Link, places: Sequence[Place], spool: Path | None) -> set[str]:
    """Returns the digests whose bytes are not to be had any more."""
    sources, owned = _sources(places)
    missing = link.missing_blobs(sources) if sources else set()
    refused: set[str] = set()
    while missing:
        began = time.monotonic()
        refused |= _send_some(host, link, [sources[digest] for digest in sorted(missing)], owned, spool)
        took_long = time.monotonic() > began + ASK_AGAIN_S  # what the yard had then, it need not have now
        missing = link.missing_blobs(sources) - refused if took_long else set()
    return refused


def _send_some(
    host: Host, link: Link, sources: Sequence[Source], owned: Collection[str], spool: Path | None
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
def _still(sources: Sequence[Source], found: dict[str, Path], spool: Path | None) -> Iterator[dict[str, Path]]:
    """What nobody will change: a link to a file that is written to would change what its digest promises."""
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


def _copied(path: Path, source: Source, target: Path) -> bool:
    """A file that only grew is still what it was, up to where it ended then."""
    seen, left = hashlib.sha256(), source.size
    try:
        with path.open("rb") as file, target.open("wb") as copy:
            while left and (chunk := file.read(min(CHUNK, left))):
                seen.update(chunk)
                copy.write(chunk)
                left -= len(chunk)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise errors.DiskFull(f"there is no room in {target.parent} for outputs on their way") from error
        return False
    return f"sha256:{seen.hexdigest()}" == source.digest


def _sources(places: Sequence[Place]) -> tuple[dict[str, Source], set[str]]:
    """One file for each digest; and the digests of those that nobody will change."""
    sources: dict[str, Source] = {}
    owned: set[str] = set()
    for place in places:
        for output in place.found.files:
            path = f"{place.search.directory}/{output.path}"
            sources[output.digest] = Source(path=path, size=output.size, digest=output.digest)
            (owned.add if place.own else owned.discard)(output.digest)
    return sources, owned


def _put(link: Link, source: Source, path: Path, movable: bool) -> bool:
    """False when it is not what it was any more."""
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


def _told(output: Output) -> dict[str, Any]:
    return {"path": output.path, "size": output.size, "digest": output.digest, "mode": output.mode}
