"""A delta between two texts: ranges of a base that the receiver has, and new text.

Used for trees: when one file changes, so does one of very many entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.model.packs import LARGE

Piece = list[int] | str  # a range of the base, or new text
MOST_PIECES = 100_000
_END = b"],["  # between two entries of a tree


def compare(base: bytes, text: bytes) -> list[Piece]:
    """The text as pieces. Entries that the base has in the same order become ranges."""
    places, at = {}, 0
    for entry in _entries(base):
        places[entry] = at
        at += len(entry)
    pieces: list[Piece] = []
    for entry in _entries(text):
        _add(pieces, entry, places.get(entry))
    return pieces


def _entries(text: bytes) -> list[bytes]:
    *entries, last = text.split(_END)
    return [*(entry + _END for entry in entries), last]


def _add(pieces: list[Piece], entry: bytes, at: int | None) -> None:
    last = pieces[-1] if pieces else None
    if at is None:
        new = entry.decode()
        if isinstance(last, str):
            pieces[-1] = last + new
        else:
            pieces.append(new)
    elif isinstance(last, list) and last[1] == at:
        last[1] = at + len(entry)
    else:
        pieces.append([at, at + len(entry)])


def apply(base: bytes, pieces: object) -> bytes:
    """Raises InvalidInput."""
    if not isinstance(pieces, list):
        raise errors.InvalidInput("pieces: must be a list of texts and ranges")
    fields.at_most(len(pieces), "pieces", MOST_PIECES)
    made, size = [], 0
    for piece in pieces:
        made.append(_bytes(base, piece))
        size += len(made[-1])
        if size > LARGE:
            raise errors.InvalidInput(f"pieces: they make more than {LARGE} bytes", "send it as a file")
    return b"".join(made)


def _bytes(base: bytes, piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogatepass")
    start, end = _range(piece)
    if not 0 <= start <= end <= len(base):
        raise errors.InvalidInput(f"pieces: the base has {len(base)} bytes: {start} to {end} is no range of it")
    return base[start:end]


def _range(piece: object) -> Sequence[int]:
    if not isinstance(piece, list) or [type(number) for number in piece] != [int, int]:
        raise errors.InvalidInput("pieces: each is a text or a range of two whole numbers")
    return piece
