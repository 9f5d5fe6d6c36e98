"""JSON's types, equality and references, as JSON Schema means them."""

from __future__ import annotations

import re
from typing import Any

from runyard import errors
from runyard.model import template

Schema = dict[str, Any] | bool

KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
LONGEST_SHOWN = 60
LONGEST_CHAIN = 100  # references that lead to references
_TYPES: dict[str, type | tuple[type, ...]] = {"object": dict, "array": list, "string": str, "number": (int, float)}
_REFERENCE = re.compile(r"#(?:/(\$defs|definitions)/([^/]+))?")


def resolved(schema: Schema, root: Schema) -> Schema:
    """Where a chain of references leads; annotations beside a reference are kept."""
    steps = 0
    while isinstance(schema, dict) and "$ref" in schema and steps < LONGEST_CHAIN:
        beside = {name: item for name, item in schema.items() if name != "$ref"}
        target = lookup(schema["$ref"], root)
        schema = {**target, **beside} if isinstance(target, dict) else target
        steps += 1
    return schema


def lookup(reference: Any, root: Schema) -> Schema:
    """What `#`, `#/$defs/name` or `#/definitions/name` means in the same document."""
    match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        raise errors.InvalidInput(
            f"schema: $ref {reference!r} leads outside", "use references like #/$defs/name: nothing is loaded"
        )
    if match[1] is None:
        return root
    defined = root.get(match[1]) if isinstance(root, dict) else None
    name = match[2].replace("~1", "/").replace("~0", "~")
    if not isinstance(defined, dict) or name not in defined:
        raise errors.InvalidInput(f"schema: $ref {reference!r} leads nowhere", "define it under $defs")
    found: Schema = defined[name]
    return found


def is_kind(value: Any, kind: str) -> bool:
    """JSON Schema's types: true is no number, and 5.0 is an integer."""
    if kind == "null":
        return value is None
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES[kind])


def equal(one: Any, other: Any) -> bool:
    """JSON's equality: 1 is 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(item, other[name]) for name, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return (type(one) is type(other) and one == other) or (is_number(one) and is_number(other) and one == other)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def show(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else template.show_value(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
