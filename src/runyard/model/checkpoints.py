"""When a run's checkpoints come to the yard, how many of them stay, and what is one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, globs, signals, units

END, NEVER = "end", "never"
USUAL_S = 600  # between two, where the next attempt may be on another disk
KEPT = 3
MOST_KEPT = 10_000

# Half of a file, by the names that programs give it while they write; and what others leave beside it.
UNFINISHED = r"(?:.*/)?(?:[^/]*\.(?:tmp|temp|part|partial|incomplete|swp|lock)|\.(?:nfs|~|#)[^/]*|[^/]*~)"
WHOLE = rf"(?!(?:{UNFINISHED})\Z).*"


@dataclass(frozen=True, slots=True)
class Policy:
    """When they are sent. Whatever it says, they come when somebody asks for them."""

    at_end: bool = True
    every: int | None = None  # seconds, while the run runs


def checked(value: object, where: str) -> str:
    """The same text, if it can be read; empty: what the site says."""
    if value in ("", END, NEVER):
        return str(value)
    try:
        seconds = units.parse_duration(value, where)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message, "write it like 10m, or use end or never") from None
    fields.integer(seconds, where, 1, 30 * 86400)
    return str(value)


def policy(said: str, *, is_shared: bool) -> Policy:
    """`is_shared`: all attempts of the site see one directory, so that nothing is lost with a node."""
    if said == NEVER:
        return Policy(at_end=False)
    if said == END or (not said and is_shared):
        return Policy()
    return Policy(every=int(units.parse_duration(said, "every")) if said else USUAL_S)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A run that can go on from what it saved: it is warned before its time limit, and goes on in another attempt."""

    signal: str = "USR1"
    grace: int = 60
    max_attempts: int = 100
    every: str = ""  # how often what it saved comes to the yard, see `policy`; empty: what the site says
    keep: int = KEPT  # how many of them the yard keeps
    prune: tuple[str, ...] = ()  # globs: of the files that match, only so many stay at the site, too

    @classmethod
    def parse(cls, value: object) -> Checkpoint | None:
        if isinstance(value, bool):
            return cls() if value else None
        given = fields.mapping(value, "checkpoint", [item.name for item in dataclasses.fields(cls)])
        return cls(
            signal=signals.parse(given.get("signal", "USR1"), "checkpoint.signal"),
            grace=signals.parse_grace(given.get("grace", 60), "checkpoint.grace"),
            max_attempts=fields.integer(given.get("max_attempts", 100), "checkpoint.max_attempts", 1, 10_000),
            every=checked(given.get("every", ""), "checkpoint.every"),
            keep=fields.integer(given.get("keep", KEPT), "checkpoint.keep", 1, MOST_KEPT),
            prune=_prune(given.get("prune") or ()),
        )

    def to_json(self) -> dict[str, Any]:
        further = {"every": self.every, "keep": self.keep, "prune": list(self.prune)}
        usual = {"every": "", "keep": KEPT, "prune": []}
        said = {name: value for name, value in further.items() if value != usual[name]}
        return {"signal": self.signal, "grace": self.grace, "max_attempts": self.max_attempts, **said}


def _prune(value: object) -> tuple[str, ...]:
    return globs.parse([value] if isinstance(value, str) else value, "checkpoint.prune")
