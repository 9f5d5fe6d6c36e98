"""What stays of an attempt's directory at its site after the yard has everything that it was promised."""

from __future__ import annotations

from dataclasses import dataclass

from runyard import errors
from runyard.model import units

UNSAVED, NONE, OUTPUTS, FAILED, ALL = "unsaved", "none", "outputs", "failed", "all"
WORDS = (UNSAVED, NONE, OUTPUTS, FAILED, ALL)


@dataclass(frozen=True, slots=True)
class Keep:
    what: str = UNSAVED  # what the yard does not have: files that the run left in its working directory
    seconds: int | None = None  # after which the rest goes as well; None: never

    def after(self, *, succeeded: bool) -> Keep:
        """`failed` stands for everything or for the usual, as it turned out."""
        if self.what != FAILED:
            return self
        return Keep() if succeeded else Keep(ALL, self.seconds)


def parse(text: object, where: str = "keep") -> Keep:
    """`all`, `failed:3d`: a word, and for how long; nothing is the usual."""
    if text == "":
        return Keep()
    what, colon, time = text.partition(":") if isinstance(text, str) else ("", "", "")
    if what not in WORDS or (colon and what == NONE):
        raise errors.InvalidInput(f"{where}: {text!r} is not known", "use none, unsaved, outputs, failed:3d or all:7d")
    return Keep(what, units.parse_duration(time, where) if colon else None)


def checked(value: object, where: str = "keep") -> str:
    """The same text, if it can be read."""
    parse(value, where)
    return str(value)
