"""Whether a JSON value has the shape of a schema: the part of JSON Schema that runyard.server.schemas uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.server.schemas import COMPONENTS, Schema

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def check(value: Any, schema: Schema, where: str) -> None:
    """Raises InvalidInput with the place of the first difference."""
    if "$ref" in schema:
        schema = COMPONENTS[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        _check_any(value, schema["anyOf"], where)
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise errors.InvalidInput(f"{where}: must be of type {' or '.join(kinds)}")
    for keyword, rule in _RULES.items():
        if keyword in schema:
            rule(value, schema, where)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _check_any(value: Any, choices: list[Schema], where: str) -> None:
    """The complaint about the first choice is the one that helps: the others are null or a shorthand."""
    complaints = []
    for choice in choices:
        try:
            return check(value, choice, where)
        except errors.InvalidInput as error:
            complaints.append(error)
    raise complaints[0]


def _fields(value: Any, schema: Schema, where: str) -> None:
    if not isinstance(value, dict):
        return
    given = fields.mapping(value, where, schema["properties"])
    for name in schema["required"]:
        if name not in given:
            raise errors.InvalidInput(f"{where}: {name} is missing")
    for name, item in given.items():
        check(item, schema["properties"][name], f"{where}.{name}")


def _items(value: Any, schema: Schema, where: str) -> None:
    for index, item in enumerate(value or ()):
        check(item, schema["items"], f"{where}[{index}]")


def _fewest(value: Any, schema: Schema, where: str) -> None:
    if value is not None and len(value) < schema["minItems"]:
        raise errors.InvalidInput(f"{where}: has {len(value)} items, needs {schema['minItems']}")


def _most(value: Any, schema: Schema, where: str) -> None:
    if value is not None and len(value) > schema["maxItems"]:
        raise errors.InvalidInput(f"{where}: has {len(value)} items, more than {schema['maxItems']}")


def _enum(value: Any, schema: Schema, where: str) -> None:
    fields.one_of(value, where, schema["enum"])


def _minimum(value: Any, schema: Schema, where: str) -> None:
    if value is not None and value < schema["minimum"]:
        raise errors.InvalidInput(f"{where}: {value} is less than {schema['minimum']}")


def _maximum(value: Any, schema: Schema, where: str) -> None:
    if value is not None and value > schema["maximum"]:
        raise errors.InvalidInput(f"{where}: {value} is more than {schema['maximum']}")


def _longest(value: Any, schema: Schema, where: str) -> None:
    if value is not None:
        fields.text(value, where, schema["maxLength"], empty=not schema.get("minLength"))


def _pattern(value: Any, schema: Schema, where: str) -> None:
    if value is not None and not re.fullmatch(schema["pattern"], value):
        raise errors.InvalidInput(f"{where}: {value[:80]!r} does not look like {schema['pattern']}")


_RULES: dict[str, Callable[[Any, Schema, str], None]] = {
    "properties": _fields,
    "minItems": _fewest,
    "maxItems": _most,
    "items": _items,
    "enum": _enum,
    "minimum": _minimum,
    "maximum": _maximum,
    "maxLength": _longest,
    "pattern": _pattern,
}
