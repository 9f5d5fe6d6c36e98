"""The near half of `Host.build` and `Host.deliver`: plans in the words of `far.building`, and its answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runyard.hosts.base import Built, Parcel, Plan, Wanted
from runyard.hosts.far.desk import PIECE

TOGETHER = 256 << 10  # bytes


def question(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(plan) for plan in plans]


def answer(plans: Sequence[Plan], found: Iterable[dict[str, Any]]) -> Built:
    built = Built()
    for told in found:
        if "problem" in told:
            built.problems[plans[told["plan"]].name] = OSError(*told["problem"])
        else:
            built.missing.setdefault(told["source"], []).extend(Wanted(*row) for row in told["missing"])
    return built


def stream(parcels: Iterable[Parcel]) -> Iterator[bytes]:
    """Each parcel as its name, its pieces and an empty piece; an empty name ends it all. Small ones go together: to
    hand over bytes has its price, however few they are."""
    gathered: list[bytes] = []
    held = 0
    for part in _parts(parcels):
        gathered += (PIECE.pack(len(part)), part)
        held += PIECE.size + len(part)
        if held >= TOGETHER:
            yield b"".join(gathered)
            gathered, held = [], 0
    yield b"".join((*gathered, PIECE.pack(0)))


def _parts(parcels: Iterable[Parcel]) -> Iterator[bytes]:
    for parcel in parcels:
        yield json.dumps([parcel.digest, parcel.offset]).encode()
        yield from filter(None, parcel.pieces)
        yield b""
