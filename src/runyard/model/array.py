"""A run's place in an array of runs. They have consecutive ids, so the first one's follows from any of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields

MOST = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Array:
    index: int  # the number of this task
    first: int  # the numbers of all tasks go from here
    last: int  # to here
    step: int = 1
    offset: int = 0  # how many tasks come before this one
    count: int = 1  # how many there are
    limit: int | None = None  # most of them that run together

    @classmethod
    def parse(cls, value: object) -> Array:
        given = fields.mapping(value, "array", _NAMES)
        numbers = {
            name: fields.integer(item, f"array.{name}", int(name in ("step", "count", "limit")), MOST)
            for name, item in given.items()
            if item is not None
        }
        missing = [name for name in ("index", "first", "last") if name not in numbers]
        if missing:
            raise errors.InvalidInput(f"array: no {missing[0]}", "an array has at least index, first and last")
        array = cls(**numbers)
        if not (array.first <= array.index <= array.last and array.offset < array.count):
            raise errors.InvalidInput(
                "array: its numbers contradict each other", "first ≤ index ≤ last, offset < count"
            )
        return array

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    def first_run(self, run: int) -> int:
        """The id of the array: that of its first run."""
        return run - self.offset


_NAMES = tuple(field.name for field in dataclasses.fields(Array))
