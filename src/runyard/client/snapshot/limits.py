"""Errors for snapshots that are too large; they name the cause."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from runyard import errors
from runyard.model import units

NAMED = 3  # of the biggest files


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    what: str  # "the code", for people
    bytes: int
    files: int
    fix: str  # of too many bytes; {folder} is where most files are

    def check_count(self, paths: Collection[str]) -> None:
        if len(paths) <= self.files:
            return
        folder, count = fullest(paths)
        where = f"{count:,} of them are in {folder}" if folder else "all of them beside each other"
        raise errors.InvalidInput(
            f"{self.what} has {len(paths):,} files, more than {self.files:,}: {where}",
            self.fix.format(folder=folder or "."),
        )

    def check_size(self, sizes: Mapping[str, int]) -> None:
        """Of files by path."""
        total = sum(sizes.values())
        if total <= self.bytes:
            return
        named = ", ".join(f"{path} ({units.show_size(size)})" for path, size in biggest(sizes.items()))
        raise errors.InvalidInput(
            f"{self.what} has {units.show_size(total)}, more than {units.show_size(self.bytes)}; the biggest: {named}",
            self.fix.format(folder=next(iter(biggest(sizes.items())))[0]),
        )


def biggest(sizes: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return heapq.nlargest(NAMED, sizes, key=lambda item: item[1])


def fullest(paths: Collection[str]) -> tuple[str, int]:
    """The deepest folder with more than half of the files, or else the one at the top with most; '' is the root."""
    counts: Counter[str] = Counter()
    for path in paths:
        folder = path
        while folder := folder.rpartition("/")[0]:
            counts[folder] += 1
    if not counts:
        return "", len(paths)
    most = [folder for folder, count in counts.items() if count * 2 > len(paths)]
    top = max((folder for folder in counts if "/" not in folder), key=lambda folder: counts[folder])
    found = max(most, key=lambda folder: folder.count("/"), default=top)
    return found, counts[found]
