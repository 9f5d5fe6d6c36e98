"""Pieces of a comparison: two mappings of plain values, and where they are not equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MISSING: Any = object()


class DifferenceKind(StrEnum):
    """What it means when two runs differ in it."""

    ASKED = "asked"  # they are not the same experiment
    LABEL = "label"  # the same experiment under other names, or submitted from another directory
    PLACE = "place"  # the same experiment on another machine
    RESULT = "result"  # something else came out
    EFFORT = "effort"  # what it took, which is never quite the same


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    name: str
    before: Any = MISSING  # of the first run; MISSING: it has none
    after: Any = MISSING

    def hidden(self, words: str) -> Difference:
        """With this text instead of the values."""
        before, after = (MISSING if value is MISSING else words for value in (self.before, self.after))
        return Difference(name=self.name, before=before, after=after)

    def to_json(self) -> dict[str, Any]:
        values = (("before", self.before), ("after", self.after))
        return {"name": self.name, **{name: value for name, value in values if value is not MISSING}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    name: str
    kind: DifferenceKind
    differences: tuple[Difference, ...]


def section(name: str, kind: DifferenceKind, before: Mapping[str, Any], after: Mapping[str, Any]) -> Section:
    """Names in the order of the first, then those that only the second has."""
    names = list(dict.fromkeys([*before, *after]))
    pairs = ((each, before.get(each, MISSING), after.get(each, MISSING)) for each in names)
    found = tuple(Difference(name=each, before=one, after=two) for each, one, two in pairs if not _equal(one, two))
    return Section(name=name, kind=kind, differences=found)


def _equal(one: Any, two: Any) -> bool:
    """NaN equals NaN; 1 does not equal True."""
    both_nan = one != one and two != two
    return both_nan or (one == two and isinstance(one, bool) == isinstance(two, bool))
