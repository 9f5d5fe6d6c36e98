"""The options of a batch site: settings of runyard, and options that are passed to the scheduler unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.backends.batch import rules
from runyard.backends.batch.dialect import Dialect
from runyard.model import fields, units
from runyard.model.resources import Resources

AGENT, NODE = "agent", "node"
_NAME = re.compile(r"-{0,2}[A-Za-z][\w-]{0,60}")
# Schedulers have patterns and lists for the names of files; sh has its own ideas about the rest.
_BAD_IN_DIRECTORY = re.compile(r"[\x00-\x1f%$,:\\\"'`]")


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSettings:
    """The settings of runyard among a site's options. Times are seconds."""

    python: str = "python3"  # the runners' interpreter, on the compute nodes and where the agent's commands run
    bin: str = ""  # the directory of the scheduler's programs; empty: found on PATH
    client_env: tuple[str, ...] = ()  # NAME=value for those programs, such as SLURM_CONF or SGE_ROOT
    poll_interval: float = 10.0  # between two questions about the queue
    command_timeout: float = 20.0
    accounting: bool = True  # False: never ask for accounts
    time_margin: int = 60  # by which the native time limit exceeds the runner's own
    max_jobs: int = 2000  # most tasks of this user in the queue, those of others than runyard included; 0: take nothing
    array_limit: int | None = None  # most tasks of one array that run together
    relay: str = AGENT  # what uploads the results: the agent in its passes, or the node at the end of each job
    rules: tuple[rules.OptionRule, ...] = ()
    native: Mapping[str, str] = field(default_factory=dict)  # for the scheduler

    @property
    def submit_timeout(self) -> float:
        """A submit gets more time: one without an answer costs a lookup and a wait."""
        return self.command_timeout * 1.5


def parse(options: Mapping[str, Any], kind: type[Dialect]) -> tuple[BatchSettings, Dialect]:
    """Raises ConfigError with the option's name."""
    try:
        given = {name: _text(name, value) for name, value in options.items()}
        dialect = kind({name: value for name, value in given.items() if name in kind.settings})
        read = {name: _READERS[name](value) for name, value in given.items() if name in _READERS}
        rest = {name: value for name, value in given.items() if name not in _READERS and name not in kind.settings}
        return BatchSettings(**read, native=clean(rest, dialect)), dialect
    except errors.InvalidInput as error:
        raise errors.ConfigError(error.message, error.fix) from None


def clean(options: Mapping[str, str], dialect: Dialect) -> dict[str, str]:
    """By canonical name; raises InvalidInput for options that runyard sets itself."""
    found: dict[str, str] = {}
    for given, value in options.items():
        if not _NAME.fullmatch(given):
            raise errors.InvalidInput(f"{given!r} is not an option", "write it like --option partition=gpu")
        name = dialect.option_name(given)
        dialect.check_option(name, _text(given, value))
        _lay_over(found, name, value, dialect)
    return found


def combined(settings: BatchSettings, own: Mapping[str, str], asked: Resources, dialect: Dialect) -> dict[str, str]:
    """In order of precedence, lowest first: the site's, those of its rules, the run's own."""
    found = dict(settings.native)
    for rule in settings.rules:
        for name, value in clean(rule.apply(asked), dialect).items():
            _lay_over(found, name, value, dialect)
    native = {name: value for name, value in own.items() if name not in _OF_RUNS}
    for name, value in clean(native, dialect).items():
        _lay_over(found, name, value, dialect)
    return found


def array_limit(settings: BatchSettings, own: Mapping[str, str]) -> int | None:
    return _count("array_limit")(own["array_limit"]) if "array_limit" in own else settings.array_limit


def check_directory(directory: str) -> None:
    bad = _BAD_IN_DIRECTORY.search(directory)
    if bad:
        raise errors.ConfigError(
            f"the site's directory {directory!r} holds the character {bad[0]!r}, which schedulers read as a pattern",
            "choose another directory for the site",
        )


def _lay_over(found: dict[str, str], name: str, value: str, dialect: Dialect) -> None:
    if name in found and name in dialect.joined:
        found[name] = f"{found[name]},{value}"
    else:
        found[name] = value


def _text(name: str, value: object) -> str:
    text = fields.text(value, f"option {name}", 4096, empty=True)
    if "\n" in text and name != "rules":
        raise errors.InvalidInput(f"option {name}: holds a line break")
    return text


def _seconds(name: str) -> Any:
    return lambda text: 0 if text == "0" else units.parse_duration(text, f"option {name}")


def _count(name: str, least: int = 1) -> Any:
    def read(text: str) -> int | None:
        if not text.isdecimal() or int(text) < least:
            raise errors.InvalidInput(f"option {name}: {text!r} is not a whole number of at least {least}")
        return int(text)

    return read


def _variables(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise errors.InvalidInput(f"option client_env: {error}") from None
    for word in words:
        if not re.match(r"[A-Za-z_]\w*=", word):
            raise errors.InvalidInput(f"option client_env: {word!r} is not NAME=value")
    return tuple(words)


def _yes_or_no(text: str) -> bool:
    return fields.one_of(text, "option accounting", ("yes", "no")) == "yes"


_READERS: dict[str, Any] = {
    "python": lambda text: text or "python3",
    "bin": lambda text: text.rstrip("/"),
    "client_env": _variables,
    "poll_interval": _seconds("poll_interval"),
    "command_timeout": _seconds("command_timeout"),
    "accounting": _yes_or_no,
    "time_margin": _seconds("time_margin"),
    "max_jobs": _count("max_jobs", 0),
    "array_limit": _count("array_limit"),
    "relay": lambda text: fields.one_of(text, "option relay", (AGENT, NODE)),
    "rules": rules.parse,
}
_OF_RUNS = frozenset({"array_limit"})
