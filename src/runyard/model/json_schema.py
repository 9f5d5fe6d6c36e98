"""Building blocks of schemas, in the JSON Schema dialect of OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runyard.model import units

Schema = dict[str, Any]

ANYTHING: Schema = {"type": "object"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_SIZE = r"^\s*[0-9]+(\.[0-9]+)?\s*[KMGTPkmgtp]?[iI]?[bB]?\s*$"


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: dict[str, Schema], required: list[str] | None = None, description: str = "") -> Schema:
    """An object with these fields and no others; all are required unless `required` lists them."""
    needed = list(properties) if required is None else required
    shape = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    return described(shape, description)


def listed(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def integer(description: str = "", least: int = 0, most: int | None = None) -> Schema:
    limits = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return described({"type": "integer", **limits}, description)


def text(description: str = "", **limits: int | str) -> Schema:
    return described({"type": "string", **limits}, description)


def one_of(values: Iterable[str], description: str = "") -> Schema:
    return described({"type": "string", "enum": sorted(str(value) for value in values)}, description)


def or_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema


def size(description: str) -> Schema:
    number = {"type": "integer", "minimum": 1, "maximum": units.MAX_MEMORY}
    return {"description": f"{description}: bytes, or like 4G", "anyOf": [number, text(pattern=_SIZE)]}


def duration(description: str) -> Schema:
    number = {"type": "number", "minimum": 1, "maximum": units.MAX_TIME}
    return {"description": f"{description}: seconds, or like 90s, 2h, 1:30:00", "anyOf": [number, {"type": "string"}]}
