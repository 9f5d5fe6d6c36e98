"""One declaration per field of what users and programs submit; everything else is derived from it.

    class Stop(Declared):
        grace: int = field(Grace(), default=10, help="How long it may take", option=Option("--grace", "DURATION"))

From a declaration follow the parser and its error sentences, JSON in both directions, the JSON Schema, the options of
the command line, who may set a field, the group in which two runs are compared, and whether a batch must be alike in
it. docs/internals/fields.md has the list, and the reasons.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, Self

from runyard import errors
from runyard.model import fields
from runyard.model.json_schema import Schema, or_null, record

_KEY = "declared"
_NEEDED = object()  # there is no default
_ALREADY = {str, int, float, bool, dict, type(None)}  # types that are JSON as they are


class Value(Protocol):
    """What a field may be: see runyard.model.values."""

    def parse(self, value: object, where: str) -> Any:
        """The clean value; raises InvalidInput with the path, what was expected and the nearest good value."""
        ...

    def schema(self, help: str) -> Schema: ...


@dataclass(frozen=True, slots=True)
class Beside:
    """A value whose fields stand beside those of the class that has it: a recipe has fields of a run. A name that the
    class has itself is the class's own."""

    kind: type[Declared]
    chosen: Callable[[Field], object]

    def words(self, own: Collection[str]) -> dict[str, Field]:
        known = declared(self.kind).items()
        return {name: one for name, one in known if self.chosen(one) and name not in own}

    def parse(self, value: object, where: str) -> Any:
        return self.kind.parse(value)

    def schema(self, help: str) -> Schema:
        return schema(self.kind)


class Reads(enum.Enum):
    """How the words of an option become the value of its field."""

    ONE = "one"  # the word itself
    LIST = "list"  # repeatable, a word each
    COMMAS = "commas"  # repeatable, or several words in one, with commas
    FLAG = "flag"  # no word: true
    PAIRS = "pairs"  # repeatable, NAME=VALUE, added to those of a file
    FILES = "files"  # repeatable, files to fetch, added to those of a file
    SPACE = "space"  # repeatable, NAME=VALUES, added to those of a file
    RULE = "rule"  # a word and settings, over those of a file: asha,first=2


class Diff(enum.Enum):
    """Where a difference between two runs is shown."""

    SETTINGS = "settings"
    COMMAND = "command"
    SITE = "wanted place"
    LABELS = "names"
    APART = "apart"  # in its own section, or in none


class Makes(enum.Enum):
    """How results depend on a field, besides parameters and seed."""

    NOTHING = "nothing"
    COMMAND = "command"  # with the parameters it identifies a sweep that has no name
    CONTENT = "content"  # code, data and packages


@dataclass(frozen=True, slots=True)
class Option:
    """Of `runyard submit` or `runyard sweep submit`. The click type and the default in the help are the field's."""

    flags: str  # such as "-e --env"
    metavar: str = ""
    help: str = ""  # overrides the field's own
    reads: Reads = Reads.ONE
    alone: bool = False  # for single runs; a sweep has its own option for it

    def text(self, field: Field) -> str:
        return self.help or f"{field.help}{_usual(field)}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field. Every submitter may set it; other restrictions are below."""

    name: str = ""
    value: Value
    help: str = ""
    default: Any = _NEEDED
    needed: bool = False  # required in input, though it has a default here
    missing: str = ""  # the fix of the error if a field without a default is missing
    brief: bool = False  # not shown while it has its default
    option: Option | None = None
    recipe: bool = False  # a recipe may set it
    sweep: bool = True  # the runs of a sweep may have it
    rerun: str = ""  # its help in `rerun`; empty: it cannot be changed there
    drop_box: str = ""  # why a drop box may not set it; empty: it may
    diff: Diff = Diff.SETTINGS
    makes: Makes = Makes.NOTHING
    alike: bool = False  # must be equal in all runs of a batch
    staged: bool = False  # its files are made from the cache of the site
    variable: bool = False  # of a setting: RUNYARD_NAME in the environment sets it
    secret: bool = False  # it may hold a password, and is not in the text that a debugger or a log shows
    also: Mapping[str, Field] = dataclasses.field(default_factory=dict)  # other words for it, each with its own value
    track: bool = False  # runs that request different amounts of it wait in different queues

    @property
    def required(self) -> bool:
        return self.needed or self.default is _NEEDED

    def schema(self) -> Schema:
        """For an optional field, null is the same as a missing one."""
        own = self.value.schema(self.help)
        if self.required:
            return own
        usual = {"default": self.default} if _is_written(self.default) else {}
        return or_null({**own, **usual})


def field(
    value: Value, *, default: Any = dataclasses.MISSING, make: Callable[[], Any] | None = None, **said: Any
) -> Any:
    """Declares a field of a frozen dataclass; `make` builds a default that must not be shared; for the rest see
    `Field`."""
    one = Field(value=value, **said)
    if make is not None:
        return dataclasses.field(default_factory=make, metadata={_KEY: one}, repr=not one.secret)
    return dataclasses.field(default=default, metadata={_KEY: one}, repr=not one.secret)


class Declared:
    """A frozen dataclass whose fields are declared with `field`; an attribute without that is in no document."""

    __slots__ = ()
    place: ClassVar[str] = ""  # its path in errors, unless `where` is given
    root: ClassVar[bool] = False  # errors name its fields without it: `cwd`, and not `run.cwd`
    short: ClassVar[str] = ""  # the field that a bare value means
    brief: ClassVar[bool] = False  # no field is shown while it has its default
    about: ClassVar[str] = ""  # the description of its schema

    @classmethod
    def parse(cls, value: object, where: str = "") -> Self:
        """Raises InvalidInput for the first error."""
        return cls(**read(cls, value, where))

    def to_json(self) -> Any:
        """A mapping that parses to the same."""
        return plain(self)


def declared(kind: Any) -> Mapping[str, Field]:
    """The declarations by name, in their order."""
    return _declared(kind)


@cache
def _declared(kind: Any) -> Mapping[str, Field]:
    found = {}
    for item in dataclasses.fields(kind):
        if _KEY in item.metadata:
            found[item.name] = dataclasses.replace(item.metadata[_KEY], name=item.name, default=_default(item))
    return found


def _default(item: dataclasses.Field[Any]) -> Any:
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return _NEEDED if item.default is dataclasses.MISSING else item.default


def names(kind: type[Any], chosen: Callable[[Field], object] = lambda _: True) -> tuple[str, ...]:
    """The names of the fields for which `chosen` is true."""
    return tuple(name for name, one in declared(kind).items() if chosen(one))


def document(kind: Any) -> Mapping[str, Field]:
    """The declarations by the words that a document may have, also those that stand beside and other words for one."""
    return _document(kind)


@cache
def _document(kind: Any) -> Mapping[str, Field]:
    beside, found = _beside(kind), dict[str, Field]()
    for name, one in declared(kind).items():
        also = {word: dataclasses.replace(other, name=name, default=None) for word, other in one.also.items()}
        found |= beside.get(name) or {name: one, **also}
    return found


def own_words(kind: Any) -> dict[str, Field]:
    """Those of the class itself, each under its own name."""
    others = {word for words in _beside(kind).values() for word in words}
    known = document(kind).items()
    return {word: dataclasses.replace(one, name=word) for word, one in known if word not in others}


@cache
def _beside(kind: Any) -> Mapping[str, Mapping[str, Field]]:
    """Of the fields whose own fields stand beside the others: those."""
    known = declared(kind)
    return {name: one.value.words(known) for name, one in known.items() if isinstance(one.value, Beside)}


def read(kind: Any, value: object, where: str = "") -> dict[str, Any]:
    """The clean values of the fields that are given to a declared class."""
    known, place = document(kind), where or kind.place
    inside = "" if kind.root else f"{place}."
    if kind.short and isinstance(value, (str, int)):
        value = {kind.short: value}
    given = {word: item for word, item in fields.mapping(value, place, known).items() if item is not None}
    found = {}
    for name, words in _beside(kind).items():
        theirs = {word: given.pop(word) for word in words if word in given}
        found[name] = declared(kind)[name].value.parse(theirs, place)
    for word, item in given.items():
        one = known[word]
        if one.name in found:
            first = next(other for other in given if known[other].name == one.name)
            raise errors.InvalidInput(f"{word}: there is {first} already", "leave out one of them")
        found[one.name] = one.value.parse(item, inside + word)
    for one in _required(kind):
        if one.name not in found:
            told = f"no {one.name}" if one.missing else f"{one.name} is missing"
            raise errors.InvalidInput(f"{place}: {told}", one.missing)
    return found


@cache
def _required(kind: Any) -> tuple[Field, ...]:
    return tuple(one for one in declared(kind).values() if one.required)


def plain(thing: Declared) -> dict[str, Any]:
    """The fields as JSON, without brief ones that have their default."""
    shown: dict[str, Any] = {}
    kind: Any = type(thing)
    beside = _beside(kind)
    for name, unsaid in _unsaid(kind):
        item = getattr(thing, name)
        if item == unsaid:
            continue
        if name in beside:
            shown |= {word: value for word, value in item.to_json().items() if word in beside[name]}
        else:
            shown[name] = _plain(item)
    return shown


@cache
def _unsaid(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Each field with the default that is left out; most fields have none."""
    known = declared(kind).items()
    return tuple((name, one.default if kind.brief or one.brief else _NEEDED) for name, one in known)


class View(Mapping[str, Any]):
    """All fields as JSON, each converted when it is read."""

    def __init__(self, value: Declared) -> None:
        self._value, self._known = value, declared(type(value))

    def __getitem__(self, name: str) -> Any:
        return _plain(getattr(self._value, self._known[name].name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _plain(value: Any) -> Any:
    if type(value) in _ALREADY:
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, enum.Enum):
        return value.value
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def schema(kind: type[Declared]) -> Schema:
    known = document(kind).items()
    properties = {word: one.schema() for word, one in known}
    return record(properties, [word for word, one in known if one.required], kind.about)


def _usual(field: Field) -> str:
    return f" (default {field.default})" if _is_written(field.default) else ""


def _is_written(default: Any) -> bool:
    """Whether a default is a value that users would write."""
    return isinstance(default, (int, str)) and not isinstance(default, bool) and default != ""
