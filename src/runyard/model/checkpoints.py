"""When checkpoints are uploaded, how many are kept, and which files are checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runyard import errors
from runyard.model import fields, globs, json_schema, units
from runyard.model.declaration import Declared, Option, field
from runyard.model.json_schema import TEXTS
from runyard.model.values import Checked, Grace, Signal, Whole

END, NEVER = "end", "never"
USUAL_S = 600  # between two uploads, if the next attempt may be on another disk
KEPT = 3
MOST_KEPT = 10_000

# Names that programs give to files while they write them, and to files beside them.
UNFINISHED = r"(?:.*/)?(?:[^/]*\.(?:tmp|temp|part|partial|incomplete|swp|lock)|\.(?:nfs|~|#)[^/]*|[^/]*~)"
WHOLE = rf"(?!(?:{UNFINISHED})\Z).*"


@dataclass(frozen=True, slots=True)
class Policy:
    """When checkpoints are uploaded. In every case they are uploaded on request."""

    at_end: bool = True
    every: int | None = None  # seconds, while the run runs


def checked(value: object, where: str) -> str:
    """The same text, if it is valid; empty: the site's default."""
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
class Checkpoint(Declared):
    """A run that can resume from a checkpoint: signalled before its time limit, it continues in another attempt."""

    place: ClassVar[str] = "checkpoint"
    about: ClassVar[str] = (
        "A run that can resume from a checkpoint: signalled before its time limit, it continues in another attempt."
    )

    signal: str = field(Signal(), default="USR1", help="The signal sent before the time limit")
    grace: int = field(Grace(), default=60, help="How long before the limit")
    max_attempts: int = field(Whole(1, 10_000), default=100, help="Maximum number of attempts")
    every: str = field(
        Checked(checked, {"anyOf": [json_schema.duration("While it runs"), json_schema.one_of(("", END, NEVER))]}),
        default="", brief=True, help="How often checkpoints are uploaded (default: the site's)",
        option=Option(
            "--checkpoint-every", "WHEN",
            "Like --checkpoint, and upload checkpoints this often: 10m, end (of an attempt), never.",
        ),
    )  # fmt: skip
    keep: int = field(
        Whole(1, MOST_KEPT), default=KEPT, brief=True, help="How many checkpoints the yard keeps",
        option=Option("--checkpoint-keep", "N", "Like --checkpoint, and keep the N newest in the yard (default 3)."),
    )  # fmt: skip
    prune: tuple[str, ...] = field(
        Checked(lambda value, where: _prune(value, where), {"anyOf": [json_schema.text(minLength=1), TEXTS]}),
        default=(), brief=True, help="Globs: of matching files, only this many are kept at the site, too",
    )  # fmt: skip


def _prune(value: object, where: str) -> tuple[str, ...]:
    return globs.parse([value] if isinstance(value, str) else value, where)
