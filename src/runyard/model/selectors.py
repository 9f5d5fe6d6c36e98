"""Which runs a command means: `42`, `3-9`, `last`, several of them, or filters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from runyard import errors

_RANGE = re.compile(r"(\d+)-(\d+)")
WIDEST_RANGE = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    ids: tuple[int, ...] = ()
    last: bool = False  # the newest run of the caller


def parse_selectors(words: Iterable[str]) -> Selection:
    ids: dict[int, None] = {}
    last = False
    for word in (part for text in words for part in text.split(",") if part):
        if word == "last":
            last = True
        else:
            ids.update(dict.fromkeys(_numbers(word)))
    return Selection(ids=tuple(ids), last=last)


def _numbers(word: str) -> Iterable[int]:
    if word.isascii() and word.isdigit() and len(word) < 19:
        return (int(word),)
    match = _RANGE.fullmatch(word)
    if match is None:
        raise errors.InvalidInput(f"{word!r} is not a run", "name runs like 42, 3-9 or last")
    first, final = int(match[1]), int(match[2])
    if not 0 <= final - first < WIDEST_RANGE:
        raise errors.InvalidInput(f"{word!r} is not a range", f"from small to large, at most {WIDEST_RANGE} runs")
    return range(first, final + 1)
