"""The near half of `Host.build` and `Host.deliver`: plans in the words of `far.building`, and its answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runyard.hosts.base import Built, Parcel, Plan, Wanted
from runyard.hosts.far.desk import PIECE


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
    """Each parcel as its name, its pieces and an empty piece; an empty name ends it all."""
    for parcel in parcels:
        name = json.dumps([parcel.digest, parcel.offset]).encode()
        yield PIECE.pack(len(name)) + name
        for piece in filter(None, parcel.pieces):
            yield PIECE.pack(len(piece)) + piece
        yield PIECE.pack(0)
    yield PIECE.pack(0)
