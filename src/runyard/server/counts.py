"""How many requests were answered, by route and status, for the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


class RequestCounts:
    """Counted by declared path, never by the address that was asked for: the number of rows stays small."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def add(self, method: str, path: str, status: int) -> None:
        self._counts[method, path, status] += 1

    def __iter__(self) -> Iterator[tuple[tuple[str, str, int], int]]:
        return iter(sorted(self._counts.items()))
