"""Which runs a command means: `42`, `3-9`, `last`, `S1` for those of a sweep, several of them, or filters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from runyard import errors

_RANGE = re.compile(r"(\d+)-(\d+)")
_SWEEP = re.compile(r"[Ss]([0-9]{1,18})")
WIDEST_RANGE = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    ids: tuple[int, ...] = ()
    last: bool = False  # the newest run of the caller
    sweeps: tuple[int, ...] = ()  # all runs of these


def parse_selectors(words: Iterable[str]) -> Selection:
    ids: dict[int, None] = {}
    sweeps: dict[int, None] = {}
    last = False
    for word in (part for text in words for part in text.split(",") if part):
        if word == "last":
            last = True
        elif is_sweep(word):
            sweeps[sweep_number(word)] = None
        else:
            ids.update(dict.fromkeys(_numbers(word)))
    return Selection(ids=tuple(ids), last=last, sweeps=tuple(sweeps))


def is_sweep(word: str) -> bool:
    return _SWEEP.fullmatch(word) is not None


def is_name(word: str) -> bool:
    """Where only a sweep can be meant: neither `S1` nor a number."""
    return bool(word) and not is_sweep(word) and not word.isdecimal()


def sweep_number(word: int | str) -> int:
    """The number of `S1`; a bare number means the same where only a sweep can be meant."""
    text = str(word)
    match = _SWEEP.fullmatch(text if text[:1] in ("S", "s") else f"S{text}")
    if match is None:
        raise errors.InvalidInput(f"{text!r} is not a sweep", "name it like S1: runyard sweep list")
    return int(match[1])


def _numbers(word: str) -> Iterable[int]:
    if word.isascii() and word.isdigit() and len(word) < 19:
        return (int(word),)
    match = _RANGE.fullmatch(word)
    if match is None:
        raise errors.InvalidInput(f"{word!r} is not a run", "name runs like 42, 3-9, last or S1")
    first, final = int(match[1]), int(match[2])
    if not 0 <= final - first < WIDEST_RANGE:
        raise errors.InvalidInput(f"{word!r} is not a range", f"from small to large, at most {WIDEST_RANGE} runs")
    return range(first, final + 1)
