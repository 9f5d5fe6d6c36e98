"""One parameter of a space: the values that it may have, and which of them a number between 0 and 1 means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields

MOST_CHOICES = 100_000
MOST_STEPS = 1e15  # beyond, a float cannot tell them apart
LARGEST = 1e300  # of bounds; beyond, a float cannot hold how far they are apart
DIGITS = 8  # of a number between bounds: as good as any, easy to read, and the same on every machine
RANGE_FIELDS = ("from", "to", "step", "log", "when")
CHOICE_FIELDS = ("choices", "when")
When = Mapping[str, tuple[Any, ...]]  # values of other parameters with which this one is there


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    values: tuple[Any, ...]
    when: When = field(default_factory=dict)

    @property
    def count(self) -> int | None:
        return len(self.values)

    def all(self) -> Sequence[Any]:
        return self.values

    def at(self, place: float) -> Any:
        """`place`: at least 0, less than 1."""
        return self.values[int(place * len(self.values))]

    def index(self, value: Any) -> int:
        """1, 1.0 and true are equal to Python, and three choices."""
        equal = (index for index, known in enumerate(self.values) if known == value)
        return next(index for index in equal if json.dumps(self.values[index]) == json.dumps(value))

    def to_json(self) -> dict[str, Any]:
        return {"choices": list(self.values), **_shown_when(self.when)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Numbers between two bounds, both included: whole ones where both bounds are."""

    low: int | float
    high: int | float
    step: int | float | None = None
    log: bool = False
    when: When = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int) and not isinstance(self.step, float)

    @property
    def count(self) -> int | None:
        """None: more than can be distinguished."""
        if self.step is None and not self.is_whole:
            return None
        return math.floor((self.high - self.low) / (self.step or 1) + 1e-9) + 1

    def all(self) -> Sequence[Any]:
        assert self.count is not None, "a range of floats has no list"
        return [self.nth(index) for index in range(self.count)]

    def at(self, place: float) -> int | float:
        """`place`: at least 0, less than 1."""
        if self.log:
            return self._log_at(place)
        if self.count is not None:
            return self.nth(int(place * self.count))
        return self.tidy(self.low + place * (self.high - self.low))

    def tidy(self, value: float) -> int | float:
        """Within the bounds, in few digits."""
        rounded = round(value) if self.is_whole else float(f"{value:.{DIGITS}g}")
        return min(max(rounded, self.low), self.high)

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"from": self.low, "to": self.high}
        if self.step is not None:
            shown["step"] = self.step
        return {**shown, **({"log": True} if self.log else {}), **_shown_when(self.when)}

    def nth(self, index: int) -> int | float:
        return self.tidy(self.low + index * (self.step or 1))

    def _log_at(self, place: float) -> int | float:
        high = self.high + 1 if self.is_whole else self.high  # each whole number gets its share
        value = math.exp(math.log(self.low) + place * (math.log(high) - math.log(self.low)))
        return self.tidy(math.floor(value) if self.is_whole else value)


Dimension = Choices | Range


def is_dimension(value: Mapping[str, Any]) -> bool:
    """Not a group of further parameters."""
    return "choices" in value or "from" in value or "to" in value


def parse(value: object, where: str, when: When) -> Dimension:
    """A list of values, or a mapping of `choices` or of bounds. `when`: of the group that it is in."""
    if isinstance(value, (list, tuple)):
        return Choices(values=_values(value, where), when=when)
    if not isinstance(value, Mapping) or not is_dimension(value):
        return Choices(values=_values([value], where), when=when)
    if "choices" in value:
        given = fields.mapping(value, where, CHOICE_FIELDS)
        own = parse_when(given.get("when"), f"{where}.when")
        return Choices(values=_values(given["choices"], f"{where}.choices"), when={**when, **own})
    given = fields.mapping(value, where, RANGE_FIELDS)
    own = parse_when(given.get("when"), f"{where}.when")
    return _range(given, where, {**when, **own})


def parse_when(value: object, where: str) -> When:
    """Conditions: a value, or a list of values, for each of some other parameters."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not value:
        raise errors.InvalidInput(f"{where}: must name other parameters", "write it like {optimizer: sgd}")
    return {
        str(name): _values(item if isinstance(item, (list, tuple)) else [item], f"{where}.{name}")
        for name, item in value.items()
    }


def _values(value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput(f"{where}: must be a list of values")
    if not value:
        raise errors.InvalidInput(f"{where}: there is no value to choose", "give at least one")
    fields.at_most(len(value), where, MOST_CHOICES)
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        first = seen.setdefault(_identity(item, f"{where}[{index}]"), index)
        if first != index:
            raise errors.InvalidInput(f"{where}: {item!r} is there twice", "give each value once; see reps")
    return tuple(value)


def _identity(value: object, where: str) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise errors.InvalidInput(f"{where}: {error}", "use texts, numbers, true, false, null and lists") from None


def _range(given: Mapping[str, Any], where: str, when: When) -> Range:
    low, high = (number(given.get(name), f"{where}.{name}") for name in ("from", "to"))
    log = fields.boolean(given.get("log", False), f"{where}.log")
    if low >= high:
        raise errors.InvalidInput(f"{where}: from {low} to {high} is no range", "from must be less than to")
    if log and low <= 0:
        raise errors.InvalidInput(f"{where}: {low} has no logarithm", "let a log range begin above 0")
    step = None if given.get("step") is None else _step(given["step"], where, high - low)
    if log and step is not None:
        raise errors.InvalidInput(f"{where}: a log range has no steps", "leave out step, or log")
    return Range(low=low, high=high, step=step, log=log, when=when)


def _step(value: object, where: str, width: int | float) -> int | float:
    step = number(value, f"{where}.step")
    if not 0 < step <= width:
        raise errors.InvalidInput(f"{where}.step: {step} is not between 0 and {width}", "it must fit into the range")
    if width / step > MOST_STEPS:
        raise errors.InvalidInput(f"{where}.step: {step} is too small for a range of {width}", "leave it out")
    return step


def number(value: object, where: str) -> int | float:
    """A bound: finite, and no text that only looks like a number."""
    if value is None:
        raise errors.InvalidInput(f"{where}: there is no bound", "a range has from and to")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        raise errors.InvalidInput(f"{where}: {value!r} is not a number", "write bounds like 2 or 1e-5")
    if abs(value) > LARGEST:  # type: ignore[arg-type]
        raise errors.InvalidInput(f"{where}: the number is too large", f"the largest is {LARGEST:g}")
    return value  # type: ignore[return-value]


def _shown_when(when: When) -> dict[str, Any]:
    return {"when": {name: list(values) for name, values in when.items()}} if when else {}
