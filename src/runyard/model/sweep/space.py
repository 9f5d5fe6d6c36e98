"""A space of parameters, some of which are there only with certain values of others."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.model.sweep import dimensions, text
from runyard.model.sweep.dimensions import Choices, Dimension, When

MOST = 100_000  # configurations of one sweep
MOST_COMBINATIONS = 1_000_000  # before those are left out that differ in nothing that is there
LONGEST_NAME = 200
EXAMPLE = "name a parameter and its values, such as lr: [0.1, 0.01]"
Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Space:
    dimensions: Mapping[str, Dimension]  # by their names, with dots for nested ones; conditions refer to earlier ones

    @classmethod
    def parse(cls, value: object) -> Space:
        if not isinstance(value, Mapping):
            raise errors.InvalidInput("space: must be a mapping of parameters to their values", EXAMPLE)
        listed = list(_flat(value, "", {}))
        if not listed:
            raise errors.InvalidInput("space: it is empty", EXAMPLE)
        _check_names([name for name, _ in listed])
        found = dict(listed)
        for index, name in enumerate(found):
            _check_when(name, found[name].when, dict(itertools.islice(found.items(), index)), found)
        return cls(found)

    def to_json(self) -> dict[str, Any]:
        return {name: dimension.to_json() for name, dimension in self.dimensions.items()}

    @property
    def count(self) -> int | None:
        """Of all combinations, with those counted several times that differ only in what is not there."""
        counts = [dimension.count for dimension in self.dimensions.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def is_always_there(self, name: str) -> bool:
        return name in self.dimensions and not self.dimensions[name].when

    def choose(self, value: Callable[[str, Dimension], Any]) -> Params:
        """One configuration: asks for the value of each parameter that is there, in their order."""
        chosen: Params = {}
        for name, dimension in self.dimensions.items():
            if _is_there(dimension, chosen):
                chosen[name] = value(name, dimension)
        return nested(chosen)

    def grid(self) -> Iterator[Params]:
        """All configurations, the first name fastest."""
        self.check_finite()
        lists = [dimension.all() for dimension in self.dimensions.values()]
        names, seen = list(self.dimensions), set[str]()
        has_conditions = any(dimension.when for dimension in self.dimensions.values())
        for values in itertools.product(*reversed(lists)):
            combination = dict(zip(names, reversed(values), strict=True))
            if not has_conditions:
                yield nested(combination)
            elif (key := identity(params := self._of(combination))) not in seen:
                seen.add(key)
                yield params

    def _of(self, combination: Params) -> Params:
        return self.choose(lambda name, _: combination[name])

    def check_finite(self) -> None:
        """Raises where there is no list of all configurations, or one that is too long to make."""
        for name, dimension in self.dimensions.items():
            if dimension.count is None:
                fix = "give it a step or a list of values, or use another method"
                raise errors.InvalidInput(f"space.{name}: a grid needs steps from {_ends(dimension)}", fix)
        if (self.count or 0) > MOST_COMBINATIONS:
            raise errors.InvalidInput(
                f"space: more than {MOST_COMBINATIONS:,} combinations are too many", "use fewer values, or random"
            )


def _ends(dimension: Dimension) -> str:
    shown = dimension.to_json()
    return f"{shown.get('from')} to {shown.get('to')}"


def _is_there(dimension: Dimension, chosen: Params) -> bool:
    return all(name in chosen and chosen[name] in values for name, values in dimension.when.items())


def _flat(value: Mapping[Any, Any], prefix: str, when: When) -> Iterator[tuple[str, Dimension]]:
    for key, item in value.items():
        name = f"{prefix}{_checked(key)}"
        where = f"space.{name}"
        if prefix and key == "when":
            continue  # of the group
        if isinstance(item, str):
            item = text.parse(item, where)
        if isinstance(item, Mapping) and not dimensions.is_dimension(item):
            yield from _group(item, name, where, when)
        else:
            yield name, dimensions.parse(item, where, when)


def _checked(key: object) -> str:
    if not isinstance(key, str) or not all(key.split(".")):
        raise errors.InvalidInput(f"space: {key!r} is no name of a parameter", "write it like lr or model.depth")
    return fields.text(key, f"space.{key[:20]}…", LONGEST_NAME)


def _check_names(names: Sequence[str]) -> None:
    """A name with a dot is inside of what is before the dot, which has no value then."""
    groups = {name[:at]: name for name in names for at, character in enumerate(name) if character == "."}
    seen: set[str] = set()
    for name in names:
        if name in groups:
            raise errors.InvalidInput(f"space.{name}: it has values, and {groups[name]} is inside of it", "rename one")
        if name in seen:
            raise errors.InvalidInput(f"space.{name}: it is there twice", "give all its values at once")
        seen.add(name)


def _group(item: Mapping[Any, Any], name: str, where: str, when: When) -> Iterator[tuple[str, Dimension]]:
    if not set(item) - {"when"}:
        raise errors.InvalidInput(f"{where}: there is no value to choose", "give a list, or {from: 1, to: 3}")
    yield from _flat(item, f"{name}.", {**when, **dimensions.parse_when(item.get("when"), f"{where}.when")})


def _check_when(name: str, when: When, before: Mapping[str, Dimension], known: Mapping[str, Dimension]) -> None:
    where = f"space.{name}.when"
    for other, values in when.items():
        if other not in known:
            raise errors.InvalidInput(f"{where}: there is no parameter {other!r}", fields.nearest(other, known))
        if other not in before:
            raise errors.InvalidInput(f"{where}: {other!r} comes after it", f"put {other} before {name}")
        dimension = before[other]
        strange = [value for value in values if isinstance(dimension, Choices) and value not in dimension.values]
        if strange:
            known_values = ", ".join(map(str, dimension.all()))
            raise errors.InvalidInput(f"{where}: {other} is never {strange[0]!r}", f"it is one of: {known_values}")


def nested(flat: Mapping[str, Any]) -> Params:
    """Names with dots as mappings in mappings."""
    params: Params = {}
    for name, value in flat.items():
        put(params, name, value)
    return params


def put(params: Params, name: str, value: Any) -> None:
    """Replaces what is there."""
    *path, last = name.split(".")
    place = params
    for part in path:
        inner = place.get(part)
        place[part] = place = dict(inner) if isinstance(inner, Mapping) else {}
    place[last] = value


def merged(fixed: Mapping[str, Any], chosen: Mapping[str, Any]) -> Params:
    """What is chosen over what is the same for all."""
    params = dict(fixed)
    for name, value in chosen.items():
        old = params.get(name)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        params[name] = merged(old, value) if both else value  # type: ignore[arg-type]
    return params


def identity(params: Mapping[str, Any]) -> str:
    """The same text for the same parameters, in whatever order."""
    return json.dumps(params, sort_keys=True, separators=(",", ":"))
