"""Flags of the old tools, by table: a row defines how a flag is written, its values, and its effect."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runyard import errors
from runyard.model import fields


class FlagHandling(enum.Enum):
    MEANT = "meant"  # it becomes a part of the run
    NATIVE = "native"  # a flag for the scheduler itself: passed on at a site of its kind, unused elsewhere
    REFUSED = "refused"  # known, and not to be had


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandFlag:
    names: tuple[str, ...]  # as they are written, dashes included; the last one names the field
    help: str  # for a refused one: why
    takes: str = ""  # what its value is called; empty: it takes none
    count: int = 1  # values that it takes
    optional: bool = False  # the value comes after `=`, or not at all
    fate: FlagHandling = FlagHandling.MEANT

    @property
    def field(self) -> str:
        return self.names[-1].lstrip("-").replace("-", "_")


def meant(*names: str, help: str, takes: str = "", count: int = 1, optional: bool = False) -> CommandFlag:
    return CommandFlag(names=names, help=help, takes=takes, count=count, optional=optional)


def native(*names: str, takes: str = "", optional: bool = False) -> CommandFlag:
    return CommandFlag(
        names=names, help="For the scheduler itself.", takes=takes, optional=optional, fate=FlagHandling.NATIVE
    )


def refused(*names: str, why: str, takes: str = "", optional: bool = False) -> CommandFlag:
    return CommandFlag(names=names, help=why, takes=takes, optional=optional, fate=FlagHandling.REFUSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlagTable:
    program: str
    flags: tuple[CommandFlag, ...]
    long: bool  # True: `--opt value`, `--opt=value`, `-o4` as getopt_long reads them; False: `-opt value` alone
    interspersed: bool = False  # flags may also come after the first word that is none

    def find(self, word: str) -> CommandFlag:
        """The flag that is written so, or as the beginning of one name alone."""
        for flag in self.flags:
            if word in flag.names:
                return flag
        starting = [flag for flag in self.flags if self.long and _begins(flag, word)]
        if len(starting) == 1:
            return starting[0]
        raise errors.InvalidInput(f"{self.program}: there is no option {word}", self._offer(word))

    def _offer(self, word: str) -> str:
        names = [
            name for flag in self.flags if flag.fate is not FlagHandling.REFUSED for name in flag.names if len(name) > 2
        ]
        offer = fields.nearest(word, names)
        return offer if offer.startswith("did you mean") else f"runyard {self.program} --help lists those there are"


def _begins(flag: CommandFlag, word: str) -> bool:
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


def parse(words: Sequence[str], table: FlagTable) -> Given:
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


def _read(word: str, rest: list[str], table: FlagTable) -> Iterable[tuple[CommandFlag, list[str]]]:
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


def _read_short(word: str, rest: list[str], table: FlagTable) -> Iterable[tuple[CommandFlag, list[str]]]:
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


def _take(flag: CommandFlag, name: str, rest: list[str], table: FlagTable) -> list[str]:
    if len(rest) < flag.count:
        raise errors.InvalidInput(f"{table.program}: {name} needs a value", f"write it like {name} {flag.takes}")
    taken, rest[: flag.count] = rest[: flag.count], []
    return taken


def _note(given: Given, flag: CommandFlag, values: list[str], table: FlagTable) -> None:
    if flag.fate is FlagHandling.REFUSED:
        raise errors.InvalidInput(f"{table.program}: {flag.names[-1]} is not supported", flag.help)
    value = " ".join(values)
    if flag.fate is FlagHandling.NATIVE:
        given.native[flag.names[-1].lstrip("-")] = value
    else:
        given.values.setdefault(flag.field, []).append(value)
