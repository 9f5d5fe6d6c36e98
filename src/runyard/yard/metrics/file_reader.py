"""New lines of attempts' metrics files, and all lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from runyard.blobs import AttemptFiles
from runyard.model import metrics
from runyard.model.metrics import FILE, Reported
from runyard.model.wire import AttemptKey

PIECE = metrics.LONGEST_LINE  # bytes of one attempt at once
PAUSE_S = 0.0005  # between slices: reading is never urgent, and others want to do something


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPosition:
    """The read position in the file of an attempt."""

    key: AttemptKey
    position: int
    is_over: bool  # nothing is added any more


@dataclass(frozen=True, kw_only=True, slots=True)
class NewLines:
    """The lines between two positions."""

    key: AttemptKey
    start: int
    end: int
    is_last: bool  # the file is read to its end, for ever
    has_more: bool  # at once
    reported: Reported


def read(files: AttemptFiles, place: ReadPosition) -> NewLines:
    """The next complete lines. The last line of an ended attempt counts also without a line break."""
    data = files.read(place.key, FILE, place.position, PIECE)
    is_last = place.is_over and len(data) < PIECE
    end = len(data) if is_last else metrics.whole(data)
    found = Reported()
    for part in _paced(data[:end]):
        found.points.extend(part.points)
        found.summary.update(part.summary)
    return NewLines(
        key=place.key, start=place.position, end=place.position + end, is_last=is_last, has_more=len(data) == PIECE,
        reported=found,
    )  # fmt: skip


def everything(files: AttemptFiles, key: AttemptKey) -> Iterator[Reported]:
    """All values that an attempt has reported so far."""
    position, size = 0, files.size(key, FILE)  # it may grow while we read
    while position < size and (data := files.read(key, FILE, position, min(PIECE, size - position))):
        end = metrics.whole(data) or len(data)
        yield from _paced(data[:end])
        position += end


def _paced(data: bytes) -> Iterator[Reported]:
    for part in metrics.slices(data):
        yield part
        time.sleep(PAUSE_S)
