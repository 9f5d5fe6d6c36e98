"""Fetches files from the yard that a site's cache lacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from runyard import errors
from runyard.agent.link import BlobReader
from runyard.hosts.base import MissingFile, Parcel
from runyard.model import packs, units


class TransferProgress:
    """Progress of a transfer. One thread counts, another reads."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.total = 0  # bytes requested, as far as known
        self.done = 0

    def __str__(self) -> str:
        if not self.total:
            return ""
        return f"staging {self._what}: {units.show_size(min(self.done, self.total))} of {units.show_size(self.total)}"


class Supply:
    def __init__(self, link: BlobReader, progress: TransferProgress) -> None:
        self._link, self._progress = link, progress
        self.lost: set[str] = set()  # digests that the yard does not have

    def parcels(self, wanted: Iterable[MissingFile]) -> Iterator[Parcel]:
        """Small files are sent together. An interrupted large one is resumed. Raises YardUnreachable."""
        together, alone = _sorted(wanted)
        self._progress.total = sum((one.size or 0) for one in (*together, *alone))
        self._progress.done = sum(one.held for one in alone)
        for portion in _portions(together):
            yield from self._packed([one.digest for one in portion])
        for one in alone:
            yield from self._single(one)

    def _packed(self, digests: Sequence[str]) -> Iterator[Parcel]:
        try:
            for digest, data in self._link.get_blobs(digests):
                yield Parcel(digest=digest, pieces=self._counted([data]))
        except errors.NotFound:
            lost = self._link.missing_blobs(digests)
            if not lost:
                raise
            self.lost |= lost
            yield from self._packed([digest for digest in digests if digest not in lost])

    def _single(self, one: MissingFile) -> Iterator[Parcel]:
        pieces = iter(self._link.get_blob(one.digest, one.held))
        try:
            first = next(pieces, b"")
        except errors.NotFound:
            self.lost.add(one.digest)
            return
        yield Parcel(digest=one.digest, offset=one.held, pieces=self._counted(itertools.chain([first], pieces)))

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            self._progress.done += len(piece)


def _sorted(wanted: Iterable[MissingFile]) -> tuple[list[MissingFile], list[MissingFile]]:
    """Small and large files, each once. A file of unknown size may be large."""
    small: list[MissingFile] = []
    large: list[MissingFile] = []
    for one in {one.digest: one for one in wanted}.values():
        (small if one.size is not None and one.size <= packs.LARGE else large).append(one)
    return small, large


def _portions(wanted: Iterable[MissingFile]) -> Iterator[list[MissingFile]]:
    portion: list[MissingFile] = []
    held = 0
    for one in wanted:
        if portion and (held + (one.size or 0) > packs.PACK or len(portion) == packs.MOST_ASKED):
            yield portion
            portion, held = [], 0
        portion.append(one)
        held += one.size or 0
    if portion:
        yield portion
