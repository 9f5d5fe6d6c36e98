"""Rules of a site: turn a run's request into options of its scheduler.

    memory>128000M => gres=gpu:v100l:1 ; memory>192000M and gpus>0 => gres=gpu:p100l:{gpus} partition=big

All matching rules apply; later ones override earlier ones.
"""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import units
from runyard.model.declaration import declared, names
from runyard.model.resources import Resources
from runyard.model.values import Duration, Size, Text, Whole

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, ">": operator.gt, "<": operator.lt, "=": operator.eq,
}  # fmt: skip
_READERS: dict[type, Callable[[str], Any]] = {
    Whole: int, Size: units.parse_size, Duration: units.parse_duration, Text: str.lower,
}  # fmt: skip
_READ = {name: _READERS[type(one.value)] for name, one in declared(Resources).items()}
_COUNTED = names(Resources, lambda one: isinstance(one.value, Whole))
_CONDITION = re.compile(r"(\w+)\s*(>=|<=|!=|>|<|=)\s*(\S+)")
_EXAMPLE = "write it like: memory>128G => gres=gpu:v100l:1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    field: str
    compare: str
    value: Any

    def holds(self, asked: Resources) -> bool:
        """A resource that was not requested matches no condition."""
        found = getattr(asked, self.field)
        if found is None:
            return False
        return _COMPARE[self.compare](found.lower() if isinstance(found, str) else found, self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionRule:
    conditions: tuple[Condition, ...]
    options: Mapping[str, str]

    def apply(self, asked: Resources) -> dict[str, str]:
        if not all(condition.holds(asked) for condition in self.conditions):
            return {}
        numbers = {f"{{{name}}}": str(getattr(asked, name)) for name in _COUNTED}
        return {name: _filled(value, numbers) for name, value in self.options.items()}


def parse(text: str) -> tuple[OptionRule, ...]:
    """Raises InvalidInput."""
    return tuple(_rule(line) for line in re.split(r"[;\n]", text) if line.strip())


def _rule(line: str) -> OptionRule:
    conditions, arrow, options = line.partition("=>")
    try:
        pairs = [pair.partition("=") for pair in shlex.split(options)]
    except ValueError as error:
        raise errors.InvalidInput(f"rules: {line.strip()!r}: {str(error).lower()}", _EXAMPLE) from None
    if not arrow or not pairs or not all(name for name, _, _ in pairs):
        raise errors.InvalidInput(f"rules: {line.strip()!r} is not a rule", _EXAMPLE)
    return OptionRule(
        conditions=tuple(_condition(part) for part in conditions.split(" and ")),
        options={name: value for name, _, value in pairs},
    )


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text.strip())
    if match is None or match[1] not in _READ:
        known = ", ".join(sorted(_READ))
        raise errors.InvalidInput(f"rules: {text.strip()!r} is not a condition", f"it may be about {known}; {_EXAMPLE}")
    try:
        value = _READ[match[1]](match[3])
    except ValueError:
        raise errors.InvalidInput(f"rules: {match[3]!r} is not a number", _EXAMPLE) from None
    return Condition(field=match[1], compare=match[2], value=value)


def _filled(value: str, numbers: Mapping[str, str]) -> str:
    for name, number in numbers.items():
        value = value.replace(name, number)
    return value
