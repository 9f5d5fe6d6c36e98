"""Kinds of values of declared fields: each validates input and has a JSON Schema."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, json_schema, signals, units
from runyard.model.declaration import Declared, Value, declared
from runyard.model.declaration import schema as schema_of
from runyard.model.digest import check_digest
from runyard.model.json_schema import BOOLEAN, Schema, described, listed, ref, text


@dataclass(eq=False, repr=False)
class Whole:
    least: int
    most: int

    def parse(self, value: object, where: str) -> int:
        return fields.integer(value, where, self.least, self.most)

    def schema(self, help: str) -> Schema:
        return json_schema.integer(help, self.least, self.most)


@dataclass(eq=False, repr=False)
class Text:
    longest: int
    empty: bool = False
    raw: bool = False  # bytes that are no UTF-8 are allowed

    def parse(self, value: object, where: str) -> str:
        return fields.text(value, where, self.longest, empty=self.empty, raw=self.raw)

    def schema(self, help: str) -> Schema:
        return text(help, **({} if self.empty else {"minLength": 1}), maxLength=self.longest)


@dataclass(eq=False, repr=False)
class Path:
    """Absolute."""

    longest: int = 4096
    raw: bool = True

    def parse(self, value: object, where: str) -> str:
        path = fields.text(value, where, self.longest, raw=self.raw)
        if not path.startswith("/"):
            raise errors.InvalidInput(f"{where}: {path!r} is not an absolute path", "start it with /")
        return path

    def schema(self, help: str) -> Schema:
        return text(help, pattern="^/", maxLength=self.longest)


class Directory(Path):
    """Without a slash at its end."""

    def __init__(self) -> None:
        super().__init__(raw=False)

    def parse(self, value: object, where: str) -> str:
        return super().parse(value, where).rstrip("/") or "/"


class Flag:
    def parse(self, value: object, where: str) -> bool:
        return fields.boolean(value, where)

    def schema(self, help: str) -> Schema:
        return described(BOOLEAN, help)


@dataclass(eq=False, repr=False)
class Choice:
    """One of these words; of an enumeration, its member."""

    known: Collection[str] | type[enum.StrEnum]

    def parse(self, value: object, where: str) -> str:
        word = fields.one_of(value, where, self.known)
        return self.known(word) if isinstance(self.known, enum.EnumType) else word

    def schema(self, help: str) -> Schema:
        return json_schema.one_of(self.known, help)


@dataclass(eq=False, repr=False)
class Size:
    """Bytes, or with a unit: 4G."""

    zero: bool = False  # 0 is allowed: none, or all there is

    def parse(self, value: object, where: str) -> int:
        if self.zero and value == 0:
            return 0
        return fields.at_most(units.parse_size(value, where), where, units.MAX_MEMORY)

    def schema(self, help: str) -> Schema:
        return {"anyOf": [{"const": 0}, json_schema.size(help)]} if self.zero else json_schema.size(help)


class Duration:
    """Seconds, or with units: 90s, 2h, 1:30:00."""

    def parse(self, value: object, where: str) -> int:
        return fields.at_most(units.parse_duration(value, where), where, units.MAX_TIME)

    def schema(self, help: str) -> Schema:
        return json_schema.duration(help)


class Grace:
    """A duration up to a day; 0 is none at all."""

    def parse(self, value: object, where: str) -> int:
        return signals.parse_grace(value, where)

    def schema(self, help: str) -> Schema:
        return {"anyOf": [{"const": 0}, json_schema.duration(help)]}


class Signal:
    def parse(self, value: object, where: str) -> str:
        return signals.parse(value, where)

    def schema(self, help: str) -> Schema:
        return text(f"{help}: {', '.join(signals.KNOWN)}")


class Digest:
    def parse(self, value: object, where: str) -> str:
        return check_digest(value, where)

    def schema(self, help: str) -> Schema:
        return text(help or "SHA-256 of the bytes", pattern="^sha256:[0-9a-f]{64}$")


@dataclass(eq=False, repr=False)
class OneOrMany:
    """One, or a list without duplicates."""

    item: Value
    make: Callable[[Any], Any] = lambda item: item
    bare: tuple[type, ...] = (str,)  # what may stand alone

    def parse(self, value: object, where: str) -> tuple[Any, ...]:
        items = [value] if isinstance(value, self.bare) else value
        if not isinstance(items, (list, tuple)):
            raise errors.InvalidInput(f"{where}: must be a list")
        return tuple(dict.fromkeys(self.make(self.item.parse(item, where)) for item in items))

    def schema(self, help: str) -> Schema:
        return described({"anyOf": [self.item.schema(""), listed(self.item.schema(""))]}, help)


class Number:
    def parse(self, value: object, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise errors.InvalidInput(f"{where}: {value!r} is not a number")
        return value

    def schema(self, help: str) -> Schema:
        return described(json_schema.NUMBER, help)


class Object:
    """Any mapping, as it is."""

    def parse(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise errors.InvalidInput(f"{where}: must be a mapping of names to values")
        return value

    def schema(self, help: str) -> Schema:
        return described(json_schema.ANYTHING, help)


@dataclass(eq=False, repr=False)
class Many:
    """A list; errors name the item by its number."""

    item: Value
    most: int | None = None
    make: Callable[[Iterable[Any]], Any] = tuple
    least: int = 0

    def parse(self, value: object, where: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise errors.InvalidInput(f"{where}: must be a list")
        if len(value) < self.least:
            raise errors.InvalidInput(f"{where}: has {len(value)} items, and needs {self.least}")
        if self.most is not None and len(value) > self.most:
            raise errors.InvalidInput(f"{where}: has {len(value)} items, more than {self.most}")
        return self.make(self.item.parse(item, f"{where}[{index}]") for index, item in enumerate(value))

    def schema(self, help: str) -> Schema:
        limits = {"minItems": self.least, "maxItems": self.most}
        return described(listed(self.item.schema(""), **{name: limit for name, limit in limits.items() if limit}), help)


@dataclass(eq=False, repr=False)
class Checked:
    """Validated by a function, with an equivalent schema."""

    check: Callable[[object, str], Any]
    shape: Schema

    def parse(self, value: object, where: str) -> Any:
        return self.check(value, where)

    def schema(self, help: str) -> Schema:
        return described(self.shape, help)


@dataclass(eq=False, repr=False)
class Part:
    """A nested declaration. With `inline`, it is no separate component of the OpenAPI document."""

    kind: type[Declared]
    inline: bool = False

    def parse(self, value: object, where: str) -> Any:
        return self.kind.parse(value, where)

    def schema(self, help: str) -> Schema:
        whole = schema_of(self.kind) if self.inline else ref(self.kind.__name__)
        if not self.kind.short:
            return described(whole, help)
        bare = declared(self.kind)[self.kind.short].value.schema(f"As {self.kind.place}.{self.kind.short}")
        return described({"anyOf": [bare, whole]}, help)


@dataclass(eq=False, repr=False)
class Switch:
    """A nested declaration; true means its defaults, false none."""

    kind: type[Declared]

    def parse(self, value: object, where: str) -> Any:
        if isinstance(value, bool):
            return self.kind() if value else None
        return self.kind.parse(value, where)

    def schema(self, help: str) -> Schema:
        return described({"anyOf": [ref(self.kind.__name__), BOOLEAN]}, help)


@dataclass(eq=False, repr=False)
class Plain:
    """A nested declaration that is validated and stays plain JSON."""

    part: Part

    def parse(self, value: object, where: str) -> Any:
        return self.part.parse(value, where).to_json()

    def schema(self, help: str) -> Schema:
        return self.part.schema(help)


@dataclass(eq=False, repr=False)
class Tables:
    """Of the settings: tables by name, each made by a function."""

    make: Callable[[str, object], Any]

    def parse(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise errors.InvalidInput(f"{where}: must be tables", f"write them as [{where}.NAME]")
        return {name: self.make(name, item) for name, item in value.items()}

    def schema(self, help: str) -> Schema:
        return described(json_schema.ANYTHING, help)
