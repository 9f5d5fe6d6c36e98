"""Selections of runs: `42`, `3-9`, `last`, `S1` or its name for those of a sweep, or several of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from runyard import errors

_NUMBERS = re.compile(r"[0-9]+(-[0-9]+)?")
_SWEEP = re.compile(r"[Ss]([0-9]{1,18})")
LONGEST_NUMBER = 18  # digits
WIDEST_RANGE = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    ids: tuple[int, ...] = ()
    last: bool = False  # the newest run of the caller
    sweeps: tuple[int | str, ...] = ()  # all runs of these, by number or by name

    @property
    def sweep(self) -> int | str | None:
        """The only item, if it is a sweep."""
        return self.sweeps[0] if len(self.sweeps) == 1 and not self.ids and not self.last else None


def parse_selectors(words: Iterable[str]) -> Selection:
    """A word that is neither a number nor a range nor `last` is the name of a sweep; the yard checks that it exists."""
    ids: dict[int, None] = {}
    sweeps: dict[int | str, None] = {}
    last = False
    for word in (part for text in words for part in _parts(text)):
        if word == "last":
            last = True
        elif is_sweep(word):
            sweeps[sweep_number(word)] = None
        elif _NUMBERS.fullmatch(word):
            ids.update(dict.fromkeys(_numbers(word)))
        else:
            sweeps[word] = None
    return Selection(ids=tuple(ids), last=last, sweeps=tuple(sweeps))


def _parts(text: str) -> list[str]:
    """The items of a list such as `1,4-6,S2`. Anything else is one name, even with commas. An empty word is most likely
    an unset variable of a script, and must not be accepted."""
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise errors.InvalidInput(f"{text!r} names no run", "name runs like 42, 3-9, last or S1")
    return parts if all(part == "last" or is_sweep(part) or _NUMBERS.fullmatch(part) for part in parts) else [text]


def is_sweep(word: str) -> bool:
    return _SWEEP.fullmatch(word) is not None


def is_name(word: str) -> bool:
    """Where only a sweep is possible: neither `S1` nor a number."""
    return bool(word) and not is_sweep(word) and not word.isdecimal()


def sweep_number(word: int | str) -> int:
    """The number of `S1`; a bare number means the same where only a sweep is possible."""
    text = str(word)
    match = _SWEEP.fullmatch(text if text[:1] in ("S", "s") else f"S{text}")
    if match is None:
        raise errors.InvalidInput(f"{text!r} is not a sweep", "name it like S1: runyard sweep list")
    return int(match[1])


def _numbers(word: str) -> range:
    first, _, final = word.partition("-")
    if len(first) > LONGEST_NUMBER or len(final) > LONGEST_NUMBER:
        raise errors.InvalidInput(f"{word!r} is not a run", "name runs like 42, 3-9, last or S1")
    numbers = range(int(first), int(final or first) + 1)
    if not 0 < len(numbers) <= WIDEST_RANGE:
        raise errors.InvalidInput(f"{word!r} is not a range", f"from small to large, at most {WIDEST_RANGE} runs")
    return numbers
