"""Files that grow, in a store whose objects do not: each piece is an object of its own, named by what it covers.

`<name>/<end>-<start>` holds the bytes from start to end of the file, both padded, so that keys are listed in the order
of their ends. The bytes at an offset are the same from any sender. So it does no harm when two servers write
segments that overlap, or when one of them merges what another one reads or merges, too:

- A segment is removed only when another one that covers all of it, and more, is there. Of any chain of such covers
  the largest stays: no byte is deleted that is not stored elsewhere, whatever a server last saw.
- A cover is listed behind what it covers. So a list that is read page by page while others merge has a gap nowhere.
- A reader who finds a segment gone lists again.

Nothing depends on conditional requests, which not every store has.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runyard import errors
from runyard.blobs.s3.bucket import Bucket, NoObject

LEVELS = (4 << 10, 64 << 10, 1 << 20, 8 << 20)  # bytes: segments are merged with those of about their size
TOGETHER = 16  # so many of a level are merged: a file has fewer of each, besides those that have outgrown them all
_TRIES = 10  # of a reader, against servers that merge meanwhile
_NAME = re.compile(r"([0-9]{16})-([0-9]{16})")

log = logging.getLogger(__name__)


@dataclass(frozen=True, order=True, slots=True)
class Segment:
    """Bytes from `start` up to, not including, `end`."""

    end: int
    start: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def key(self, name: str) -> str:
        return f"{name}/{self.end:016d}-{self.start:016d}"


class Segments:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def append(self, name: str, offset: int, data: bytes) -> int:
        """Add what is new in `data`; returns the size held."""
        held = list(self._list(name))
        size = held[-1].end if held else 0
        if offset > size or offset + len(data) <= size:
            return size
        fresh = Segment(start=size, end=offset + len(data))
        self._bucket.put(fresh.key(name), data[size - offset :])
        self._merge(name, [*held, fresh])
        return fresh.end

    def size(self, name: str) -> int:
        return max((segment.end for segment in self._list(name)), default=0)

    def read(self, name: str, offset: int, limit: int) -> bytes:
        return b"".join(self.chunks(name, offset, offset + limit))

    def chunks(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """What is held of these bytes, piece by piece."""
        for _ in range(_TRIES):
            try:
                for data in self._chunks(name, self._list(name, start), start, end):
                    yield data
                    start += len(data)
                return
            except NoObject:  # merged into a larger one since it was listed
                continue
        raise errors.BlobStoreError(f"{self._bucket.address} lists segments of {name} that it does not have")

    def remove(self, name: str) -> None:
        self._bucket.delete([segment.key(name) for segment in self._list(name)])

    def _list(self, name: str, from_offset: int = -1) -> Iterator[Segment]:
        """Those that end behind the offset, by their ends."""
        after = f"{name}/{from_offset + 1:016d}" if from_offset >= 0 else ""
        for item in self._bucket.find(f"{name}/", after):
            if match := _NAME.fullmatch(item.key.rpartition("/")[2]):
                yield Segment(end=int(match[1]), start=int(match[2]))

    def _chunks(self, name: str, segments: Iterable[Segment], start: int, end: int) -> Iterator[bytes]:
        for segment, first, last in plan(segments, start, end):
            yield from self._bucket.chunks(segment.key(name), first - segment.start, last - segment.start)

    def _merge(self, name: str, held: Sequence[Segment]) -> None:
        """A failure here has no effect: the next append tries again."""
        chosen = mergeable(largest(held))
        if not chosen:
            return
        whole = Segment(start=chosen[0].start, end=chosen[-1].end)
        with contextlib.suppress(NoObject):  # another server was quicker
            try:
                self._bucket.put_all(whole.key(name), whole.size, self._chunks(name, chosen, whole.start, whole.end))
                kept = largest([*held, whole])
                self._bucket.delete([part.key(name) for part in held if part not in kept])
            except errors.BlobStoreError as error:
                log.warning("the segments of %s are not merged: %s", name, error)


def plan(segments: Iterable[Segment], start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
    """Which segment gives which bytes from start to end, as far as they are covered. The segments come by their ends:
    one that begins too far on is needed only if none that follows covers it, and then there is a gap."""
    for segment in segments:
        if start >= end:
            return
        if segment.start <= start < segment.end:
            last = min(segment.end, end)
            yield segment, start, last
            start = last


def largest(segments: Iterable[Segment]) -> list[Segment]:
    """Those that no other one covers, by their ends; their starts are in order, too."""
    kept: list[Segment] = []
    for segment in sorted(segments, key=lambda segment: (-segment.end, segment.start)):
        if not kept or segment.start < kept[-1].start:
            kept.append(segment)
    return kept[::-1]


def mergeable(segments: Sequence[Segment]) -> list[Segment]:
    """The newest of them, when there are many of one level and none larger among them: so a byte is written again as
    often as there are levels, however small the pieces in which it came."""
    for smallest, limit in itertools.pairwise((0, *LEVELS)):
        newest = _newest(segments, limit)
        if sum(segment.size >= smallest for segment in newest) >= TOGETHER:
            return newest
    return []


def _newest(segments: Sequence[Segment], limit: int) -> list[Segment]:
    """Back to the last one that is not smaller than the limit."""
    return list(itertools.takewhile(lambda segment: segment.size < limit, reversed(segments)))[::-1]
