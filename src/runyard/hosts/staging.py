"""The near half of `Host.build` and `Host.deliver`: plans as requests to `far.building`, and its answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runyard.hosts.base import BuildPlan, BuildResult, MissingFile, Parcel
from runyard.hosts.far.server import PIECE

TOGETHER = 256 << 10  # bytes


def question(plans: Sequence[BuildPlan]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(plan) for plan in plans]


def answer(plans: Sequence[BuildPlan], found: Iterable[dict[str, Any]]) -> BuildResult:
    built = BuildResult()
    for told in found:
        if "problem" in told:
            built.problems[plans[told["plan"]].name] = OSError(*told["problem"])
        else:
            built.missing.setdefault(told["source"], []).extend(MissingFile(*row) for row in told["missing"])
    return built


def stream(parcels: Iterable[Parcel]) -> Iterator[bytes]:
    """Each parcel as its name, its pieces and an empty piece; an empty name ends it all. Small ones are sent together:
    each write has a cost, however few bytes it has."""
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
