"""Validation of a schema itself: known keywords with good values, references that exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.model.schema.rules import RULES
from runyard.model.schema.values import KINDS, Schema, is_kind, is_number, lookup

REMARKS = (
    "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
    "deprecated", "readOnly", "writeOnly", "format",
)  # fmt: skip
KNOWN = frozenset({*RULES, *REMARKS})
DEEPEST = 64


def parse(value: object, where: str = "schema") -> dict[str, Any]:
    """The validated schema; raises InvalidInput with the path of the error."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a JSON Schema, which is a mapping")
    document = dict(value)
    _check(document, document, where, 0)
    return document


def _check(schema: Any, root: Schema, where: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise errors.InvalidInput(f"{where}: must be a schema: a mapping, true or false")
    if depth > DEEPEST:
        raise errors.InvalidInput(f"{where}: is nested too deeply", f"use at most {DEEPEST} levels, or $ref")
    for keyword, value in schema.items():
        here = f"{where}.{keyword}"
        if keyword not in KNOWN:
            raise errors.InvalidInput(f"{where}: the keyword {keyword!r} is not known", fields.nearest(keyword, KNOWN))
        if keyword == "$ref":
            lookup(value, root)
        elif keyword in _SHAPES:
            _SHAPES[keyword](value, here)
        for name, part in _parts(keyword, value, here):
            _check(part, root, name, depth + 1)


def _parts(keyword: str, value: Any, where: str) -> list[tuple[str, Any]]:
    """The schemas inside the value of a keyword."""
    if keyword in _OF_ONE:
        return [(where, value)]
    if keyword in _OF_MANY:
        _demand(isinstance(value, list) and bool(value), where, "must be a list of schemas")
        return [(f"{where}[{index}]", part) for index, part in enumerate(value)]
    if keyword in _BY_NAME:
        _demand(isinstance(value, dict), where, "must be a mapping of names to schemas")
        return [(f"{where}.{name}", part) for name, part in value.items()]
    return []


_OF_ONE = ("items", "additionalProperties", "propertyNames", "not", "if", "then", "else")
_OF_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")


def _demand(good: bool, where: str, text: str, fix: str = "") -> None:
    if not good:
        raise errors.InvalidInput(f"{where}: {text}", fix)


def _types(value: Any, where: str) -> None:
    names = [value] if isinstance(value, str) else value
    _demand(isinstance(names, list) and bool(names), where, "must be a type or a list of types", ", ".join(KINDS))
    for name in names:
        fields.one_of(name, where, KINDS)


def _choices(value: Any, where: str) -> None:
    _demand(isinstance(value, list) and bool(value), where, "must be a list of values")


def _number(value: Any, where: str) -> None:
    _demand(is_number(value), where, "must be a number")


def _step(value: Any, where: str) -> None:
    _demand(is_number(value) and value > 0, where, "must be a number above zero")


def _count(value: Any, where: str) -> None:
    _demand(is_kind(value, "integer") and value >= 0, where, "must be a whole number")


def _flag(value: Any, where: str) -> None:
    fields.boolean(value, where)


def _names(value: Any, where: str) -> None:
    fields.texts(value, where, 1000)


def _expression(value: Any, where: str) -> None:
    try:
        re.compile(fields.text(value, where, 10_000))
    except (re.error, OverflowError) as error:
        raise errors.InvalidInput(f"{where}: {value!r} is not a regular expression: {error}") from None


def _expressions(value: Any, where: str) -> None:
    for name in value if isinstance(value, dict) else ():
        _expression(name, where)


_SHAPES: dict[str, Callable[[Any, str], None]] = {
    "type": _types,
    "enum": _choices,
    "multipleOf": _step,
    "uniqueItems": _flag,
    "required": _names,
    "pattern": _expression,
    "patternProperties": _expressions,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
}
