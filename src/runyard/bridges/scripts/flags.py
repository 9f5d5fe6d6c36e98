"""Flags of the old tools, by table: a row says how a flag is written, what it takes, and what becomes of it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runyard import errors
from runyard.model import fields


class Fate(enum.Enum):
    MEANT = "meant"  # it becomes a part of the run
    NATIVE = "native"  # a word for the scheduler itself: a site of its kind is told, others cannot use it
    REFUSED = "refused"  # known, and not to be had


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    names: tuple[str, ...]  # as they are written, dashes included; the last one names the field
    help: str  # for a refused one: why
    takes: str = ""  # what its value is called; empty: it takes none
    count: int = 1  # values that it takes
    optional: bool = False  # the value comes after `=`, or not at all
    fate: Fate = Fate.MEANT

    @property
    def field(self) -> str:
        return self.names[-1].lstrip("-").replace("-", "_")


def meant(*names: str, help: str, takes: str = "", count: int = 1, optional: bool = False) -> Flag:
    return Flag(names=names, help=help, takes=takes, count=count, optional=optional)


def native(*names: str, takes: str = "", optional: bool = False) -> Flag:
    return Flag(names=names, help="For the scheduler itself.", takes=takes, optional=optional, fate=Fate.NATIVE)


def refused(*names: str, why: str, takes: str = "", optional: bool = False) -> Flag:
    return Flag(names=names, help=why, takes=takes, optional=optional, fate=Fate.REFUSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    program: str
    flags: tuple[Flag, ...]
    long: bool  # True: `--opt value`, `--opt=value`, `-o4` as getopt_long reads them; False: `-opt value` alone
    interspersed: bool = False  # flags may also come after the first word that is none

    def find(self, word: str) -> Flag:
        """The flag that is written so, or as the beginning of one name alone."""
        for flag in self.flags:
            if word in flag.names:
                return flag
        starting = [flag for flag in self.flags if self.long and _begins(flag, word)]
        if len(starting) == 1:
            return starting[0]
        raise errors.InvalidInput(f"{self.program}: there is no option {word}", self._offer(word))

    def _offer(self, word: str) -> str:
        names = [name for flag in self.flags if flag.fate is not Fate.REFUSED for name in flag.names if len(name) > 2]
        offer = fields.nearest(word, names)
        return offer if offer.startswith("did you mean") else f"runyard {self.program} --help lists those there are"


def _begins(flag: Flag, word: str) -> bool:
    return len(word) > 2 and any(name.startswith(word) for name in flag.names if name.startswith("--"))


@dataclass(slots=True)
class Given:
    """What was given: values by field in the order in which they came, and the words that are no flags."""

    values: dict[str, list[str]] = field(default_factory=dict)
    native: dict[str, str] = field(default_factory=dict)  # words for the scheduler, by their names there
    words: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str) -> str | None:
        """The last one counts."""
        found = self.values.get(name)
        return found[-1] if found else None

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def with_stronger(self, other: Given) -> Given:
        """Both; where one value counts, it is the other's."""
        values = {name: list(found) for name, found in self.values.items()}
        for name, found in other.values.items():
            values.setdefault(name, []).extend(found)
        return Given(values=values, native={**self.native, **other.native}, words=[*self.words, *other.words])


def parse(words: Sequence[str], table: Table) -> Given:
    """Flags up to the first word that is none; from there on all words are the script's own."""
    given = Given()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            given.words.append(word)
            if not table.interspersed:
                break
            continue
        for flag, values in _read(word, rest, table):
            _note(given, flag, values, table)
    given.words += rest
    return given


def _read(word: str, rest: list[str], table: Table) -> Iterable[tuple[Flag, list[str]]]:
    """The flags that one word holds. What they take from the following words is removed there."""
    if table.long and not word.startswith("--"):
        yield from _read_short(word, rest, table)
        return
    name, equals, value = word.partition("=") if table.long else (word, "", "")
    flag = table.find(name)
    if equals and not flag.takes:
        raise errors.InvalidInput(f"{table.program}: {name} takes no value", f"write {name} alone")
    if equals or not flag.takes or flag.optional:
        yield flag, [value] if equals else []
    else:
        yield flag, _take(flag, name, rest, table)


def _read_short(word: str, rest: list[str], table: Table) -> Iterable[tuple[Flag, list[str]]]:
    """`-n4`, `-n 4`, and several without values in one word."""
    letters = word[1:]
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        flag = table.find(name)
        if not flag.takes or flag.optional:
            yield flag, []
            continue
        yield flag, [letters] if letters else _take(flag, name, rest, table)
        return


def _take(flag: Flag, name: str, rest: list[str], table: Table) -> list[str]:
    if len(rest) < flag.count:
        raise errors.InvalidInput(f"{table.program}: {name} needs a value", f"write it like {name} {flag.takes}")
    taken, rest[: flag.count] = rest[: flag.count], []
    return taken


def _note(given: Given, flag: Flag, values: list[str], table: Table) -> None:
    if flag.fate is Fate.REFUSED:
        raise errors.InvalidInput(f"{table.program}: {flag.names[-1]} is not supported", flag.help)
    value = " ".join(values)
    if flag.fate is Fate.NATIVE:
        given.native[flag.names[-1].lstrip("-")] = value
    else:
        given.values.setdefault(flag.field, []).append(value)
