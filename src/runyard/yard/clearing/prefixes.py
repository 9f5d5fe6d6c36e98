"""Very many digests, each by its first 64 bits: where another one begins in the same way, it is kept for its sake."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

FRESH = 100_000  # that may be out of order: a set takes ten times as much memory


def prefix(digest: str) -> int:
    return int(digest.removeprefix("sha256:")[:16], 16)


class Prefixes:
    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._sorted = array("Q")
        self._fresh: set[int] = set()
        self.add(digests)

    def add(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._fresh.add(prefix(digest))
            if len(self._fresh) >= FRESH:
                self._merge()

    def __contains__(self, digest: str) -> bool:
        number = prefix(digest)
        place = bisect_left(self._sorted, number)
        return number in self._fresh or (place < len(self._sorted) and self._sorted[place] == number)

    def _merge(self) -> None:
        self._sorted = array("Q", sorted(self._fresh.union(self._sorted)))
        self._fresh.clear()
