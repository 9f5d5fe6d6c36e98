"""The type of a row, whatever its columns; and the maximum number of values in one condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Row

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
T = TypeVar("T")

TOGETHER = 500  # values in one condition: an older SQLite takes 999 in a whole statement


def portions(values: Iterable[T]) -> Iterator[list[T]]:
    """In their order, as many at a time as one condition may have."""
    every = list(values)
    for start in range(0, len(every), TOGETHER):
        yield every[start : start + TOGETHER]
