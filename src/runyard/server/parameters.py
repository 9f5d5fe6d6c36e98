"""Parameters in paths and queries: declared once as a JSON schema, then checked and documented from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs

from runyard import errors
from runyard.model import fields

BIGGEST = (1 << 63) - 1
_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?", re.ASCII)
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter. A list is given as `name=a&name=b` or, unless it is `exact`, `name=a,b`; an empty value means not
    given."""

    name: str
    schema: dict[str, Any]
    description: str
    place: Literal["path", "query", "header"] = "query"
    required: bool = False
    exact: bool = False  # a comma is part of a value

    def parse(self, texts: list[str]) -> Any:
        if self.schema["type"] == "array":
            words = texts if self.exact else [word for text in texts for word in text.split(",") if word]
            return [_parse(word, self.name, self.schema["items"]) for word in words]
        if len(texts) > 1:
            raise errors.InvalidInput(f"{self.name}: given {len(texts)} times", "give it once")
        return _parse(texts[0], self.name, self.schema)

    @property
    def default(self) -> Any:
        return [] if self.schema["type"] == "array" else self.schema.get("default")


def path(name: str, schema: dict[str, Any], description: str) -> Parameter:
    return Parameter(name=name, schema=schema, description=description, place="path", required=True)


def query(
    name: str, schema: dict[str, Any], description: str, *, required: bool = False, exact: bool = False
) -> Parameter:
    return Parameter(name=name, schema=schema, description=description, required=required, exact=exact)


def header(name: str, description: str) -> Parameter:
    """For the document only: handlers read headers themselves."""
    return Parameter(name=name, schema={"type": "string"}, description=description, place="header")


def parse_all(parameters: Iterable[Parameter], path_values: Mapping[str, str], query_string: bytes) -> dict[str, Any]:
    """The validated values by name; an undeclared query parameter is refused, with the nearest good name."""
    given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    declared = {parameter.name: parameter for parameter in parameters if parameter.place != "header"}
    allowed = [name for name, parameter in declared.items() if parameter.place == "query"]
    for name in given:
        if name not in allowed:
            raise errors.InvalidInput(f"unknown parameter {name[:80]!r}", _offer(name, allowed))
    return {name: _value(parameter, path_values, given) for name, parameter in declared.items()}


def _offer(name: str, allowed: list[str]) -> str:
    return fields.nearest(name, allowed) if allowed else "this path takes none"


def _value(parameter: Parameter, path_values: Mapping[str, str], given: Mapping[str, list[str]]) -> Any:
    if parameter.place == "path":
        return parameter.parse([path_values[parameter.name]])
    texts = [text for text in given.get(parameter.name, ()) if text]
    if texts:
        return parameter.parse(texts)
    if parameter.required:
        raise errors.InvalidInput(f"{parameter.name}: missing", f"add ?{parameter.name}=… to the address")
    return parameter.default


def _parse(text: str, name: str, schema: Mapping[str, Any]) -> Any:
    kind = schema["type"]
    if kind == "integer":
        return _number(text, name, schema, _WHOLE, int)
    if kind == "number":
        return _number(text, name, schema, _NUMBER, float)
    if kind == "boolean":
        return _BOOLEANS[fields.one_of(text.lower(), name, _BOOLEANS)]
    return _text(text, name, schema)


def _number(
    text: str, name: str, schema: Mapping[str, Any], shape: re.Pattern[str], kind: type[int] | type[float]
) -> Any:
    if not shape.fullmatch(text):
        raise errors.InvalidInput(f"{name}: {text[:80]!r} is not a {'whole ' if kind is int else ''}number")
    value = kind(text)
    least, most = schema.get("minimum", 0), schema.get("maximum", BIGGEST)
    if not least <= value <= most:
        raise errors.InvalidInput(f"{name}: {text} is not between {least} and {most}")
    return value


def _text(text: str, name: str, schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return fields.one_of(text, name, schema["enum"])
    fields.text(text, name, schema.get("maxLength", 4096))
    if "pattern" in schema and not re.fullmatch(schema["pattern"], text):
        raise errors.InvalidInput(f"{name}: {text[:80]!r} does not look like {schema['pattern']}")
    return text
