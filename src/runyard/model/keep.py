"""Which files of an attempt's directory are kept at its site after the outputs were uploaded, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from runyard import errors
from runyard.model import units

UNSAVED, NONE, OUTPUTS, FAILED, ALL = "unsaved", "none", "outputs", "failed", "all"
WORDS = (UNSAVED, NONE, OUTPUTS, FAILED, ALL)


@dataclass(frozen=True, slots=True)
class Keep:
    what: str = UNSAVED  # files that the yard does not have: those left in the working directory
    seconds: int | None = None  # after which the rest is deleted as well; None: never

    def after(self, *, succeeded: bool) -> Keep:
        """`failed` means all files or the default, depending on the result."""
        if self.what != FAILED:
            return self
        return Keep() if succeeded else Keep(ALL, self.seconds)


def parse(text: object, where: str = "keep") -> Keep:
    """`all`, `failed:3d`: a word, and for how long; empty is the default."""
    if text == "":
        return Keep()
    what, colon, time = text.partition(":") if isinstance(text, str) else ("", "", "")
    if what not in WORDS or (colon and what == NONE):
        raise errors.InvalidInput(f"{where}: {text!r} is not known", "use none, unsaved, outputs, failed:3d or all:7d")
    return Keep(what, units.parse_duration(time, where) if colon else None)


def checked(value: object, where: str = "keep") -> str:
    """The same text, if it is valid."""
    parse(value, where)
    return str(value)
