"""The rule of each keyword. It is called with the value, the keyword's value, the schema around the keyword, the whole
document and the path of the value; it raises Mismatch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runyard.model import fields
from runyard.model.schema.values import Schema, equal, is_kind, is_number, lookup, show

Rule = Callable[[Any, Any, Any, Schema, str], None]


class Mismatch(Exception):
    """Where a value differs from the schema, and how. `fix` may be empty."""

    def __init__(self, path: str, text: str, fix: str = "") -> None:
        super().__init__(f"{path}: {text}")
        self.path, self.fix = path, fix


def match(value: Any, schema: Schema, root: Schema, path: str) -> None:
    if schema is True:
        return
    if schema is False:
        raise Mismatch(path, "must not be given")
    for keyword, wanted in schema.items():
        if keyword in RULES:
            RULES[keyword](value, wanted, schema, root, path)


def _ref(value: Any, reference: Any, schema: Any, root: Schema, path: str) -> None:
    match(value, lookup(reference, root), root, path)


def _type(value: Any, kinds: Any, schema: Any, root: Schema, path: str) -> None:
    names = (kinds,) if isinstance(kinds, str) else kinds
    for kind in names:
        if is_kind(value, kind):
            return
    raise Mismatch(path, f"{show(value)} is not of type {' or '.join(names)}")


def _enum(value: Any, choices: Any, schema: Any, root: Schema, path: str) -> None:
    if not any(equal(value, choice) for choice in choices):
        raise Mismatch(path, f"{show(value)} is not one of {', '.join(map(show, choices))}")


def _const(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if not equal(value, wanted):
        raise Mismatch(path, f"{show(value)} is not {show(wanted)}")


def _limit(excess: Callable[[Any, Any], bool], words: str) -> Callable[..., None]:
    def rule(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
        if is_number(value) and excess(value, wanted):
            raise Mismatch(path, f"{show(value)} {words} {show(wanted)}")

    return rule


def _is_fraction(value: Any, step: Any) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step != 0
    try:
        quotient = float(value / step)
    except OverflowError:
        return True
    return abs(quotient - round(quotient)) > 1e-9 * max(1.0, abs(quotient))


def _size(kind: type, what: str, *, most: bool) -> Callable[..., None]:
    def rule(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
        if isinstance(value, kind) and (len(value) > wanted if most else len(value) < wanted):  # type: ignore[arg-type]
            side = "more than the maximum" if most else "less than the minimum"
            raise Mismatch(path, f"has {len(value)} {what}, {side} {wanted}")  # type: ignore[arg-type]

    return rule


def _pattern(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, str) and not re.search(wanted, value):
        raise Mismatch(path, f"{show(value)} does not look like {wanted}")


def _unique(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if wanted and isinstance(value, list):
        for index, item in enumerate(value):
            if any(equal(item, earlier) for earlier in value[:index]):
                raise Mismatch(f"{path}[{index}]", f"{show(item)} is there twice")


def _items(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, list):
        for index in range(len(schema.get("prefixItems", ())), len(value)):
            match(value[index], wanted, root, f"{path}[{index}]")


def _prefix_items(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, list):
        for index, (item, part) in enumerate(zip(value, wanted, strict=False)):
            match(item, part, root, f"{path}[{index}]")


def _properties(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, dict):
        for name, part in wanted.items():
            if name in value:
                match(value[name], part, root, f"{path}.{name}")


def _pattern_properties(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, dict):
        for pattern, part in wanted.items():
            for name in value:
                if re.search(pattern, name):
                    match(value[name], part, root, f"{path}.{name}")


def _further_properties(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if not isinstance(value, dict) or wanted is True:
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in value.items():
        if name not in known and not any(re.search(pattern, name) for pattern in patterns):
            if wanted is False:
                raise Mismatch(f"{path}.{name}", "is not known", fields.nearest(name, known) if known else "")
            match(item, wanted, root, f"{path}.{name}")


def _property_names(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, dict):
        for name in value:
            match(name, wanted, root, f"{path}: the name {name!r}")


def _required(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if isinstance(value, dict):
        for name in wanted:
            if name not in value:
                raise Mismatch(f"{path}.{name}", "is missing")


def _all_of(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    for part in wanted:
        match(value, part, root, path)


def _any_of(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    complaints = _complaints(value, wanted, root, path)
    if len(complaints) == len(wanted):
        raise _most_telling(complaints)


def _one_of(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    complaints = _complaints(value, wanted, root, path)
    if len(complaints) == len(wanted):
        raise _most_telling(complaints)
    if len(complaints) < len(wanted) - 1:
        raise Mismatch(path, f"{show(value)} fits {len(wanted) - len(complaints)} alternatives, and may fit only one")


def _complaints(value: Any, choices: Any, root: Schema, path: str) -> list[Mismatch]:
    found = []
    for choice in choices:
        try:
            match(value, choice, root, path)
        except Mismatch as mismatch:
            found.append(mismatch)
    return found


def _most_telling(complaints: list[Mismatch]) -> Mismatch:
    """The alternative that matched furthest is most likely intended; the first of equals."""
    return max(complaints, key=lambda mismatch: len(mismatch.path))


def _not(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    if not _complaints(value, [wanted], root, path):
        raise Mismatch(path, f"{show(value)} is excluded")


def _if(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    branch = "else" if _complaints(value, [wanted], root, path) else "then"
    match(value, schema.get(branch, True), root, path)


def _beside_if(value: Any, wanted: Any, schema: Any, root: Schema, path: str) -> None:
    """`then` and `else` are used by `if` only."""


RULES: dict[str, Callable[[Any, Any, Any, Schema, str], None]] = {
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _limit(lambda value, wanted: value < wanted, "is less than the minimum"),
    "maximum": _limit(lambda value, wanted: value > wanted, "is more than the maximum"),
    "exclusiveMinimum": _limit(lambda value, wanted: value <= wanted, "is not more than"),
    "exclusiveMaximum": _limit(lambda value, wanted: value >= wanted, "is not less than"),
    "multipleOf": _limit(_is_fraction, "is not a multiple of"),
    "minLength": _size(str, "characters", most=False),
    "maxLength": _size(str, "characters", most=True),
    "pattern": _pattern,
    "minItems": _size(list, "items", most=False),
    "maxItems": _size(list, "items", most=True),
    "uniqueItems": _unique,
    "prefixItems": _prefix_items,
    "items": _items,
    "minProperties": _size(dict, "properties", most=False),
    "maxProperties": _size(dict, "properties", most=True),
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _further_properties,
    "propertyNames": _property_names,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "then": _beside_if,
    "else": _beside_if,
}
