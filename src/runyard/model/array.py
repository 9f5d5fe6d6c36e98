"""A run's position in an array of runs. They have consecutive ids, so the first one's id follows from any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model.declaration import Declared, field, read
from runyard.model.values import Whole

MOST = (1 << 31) - 1
_NEEDED = "an array has at least index, first and last"


@dataclass(frozen=True, kw_only=True, slots=True)
class Array(Declared):
    place: ClassVar[str] = "array"
    about: ClassVar[str] = "A run's position in an array of runs, which were submitted in one call."

    index: int = field(Whole(0, MOST), missing=_NEEDED, help="The number of this task")
    first: int = field(Whole(0, MOST), missing=_NEEDED, help="The lowest number of a task")
    last: int = field(Whole(0, MOST), missing=_NEEDED, help="The highest number of a task")
    step: int = field(Whole(1, MOST), default=1, help="Difference between two consecutive numbers")
    offset: int = field(
        Whole(0, MOST), default=0, help="How many tasks precede it; its id minus this is the id of the first"
    )
    count: int = field(Whole(1, MOST), default=1, help="How many tasks there are")
    limit: int | None = field(Whole(1, MOST), default=None, brief=True, help="Maximum number that run at the same time")

    @classmethod
    def parse(cls, value: object, where: str = "") -> Array:
        array = cls(**read(cls, value, where))
        if not (array.first <= array.index <= array.last and array.offset < array.count):
            raise errors.InvalidInput(
                "array: its numbers contradict each other", "first ≤ index ≤ last, offset < count"
            )
        return array

    def first_run(self, run: int) -> int:
        """The id of the array: that of its first run."""
        return run - self.offset
