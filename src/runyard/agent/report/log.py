"""Upload the growing files of attempts, by offset.

The yard answers each piece with the size it has, which is the offset of the next piece: whatever was lost, repeated or
sent by an earlier incarnation, both sides agree again after one answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from runyard import errors
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import Errands
from runyard.agent.part import Part
from runyard.agent.run.watch import Watch
from runyard.hosts.base import CHUNK, Seen
from runyard.model.wire import RELAYED_FILES

LANE = "relay"
PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0  # after a failed upload, doubling

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChunk:
    attempt: Attempt
    file: str
    offset: int
    data: bytes


class ChunkReceiver(Protocol):
    """The interface of `runyard.agent.sync.Sync`."""

    def append(self, piece: FileChunk) -> int: ...  # the size that the yard then has
    def report_again(self, attempt: Attempt) -> None: ...
    def trouble(self, error: Exception) -> None: ...


Outcome = tuple[list[int | None], Exception | None]  # sizes, None if the attempt is not ours any more


class Relay(Part):
    needs_yard = True

    def __init__(
        self, errands: Errands, book: Book, watch: Watch, yard: ChunkReceiver, clock: Callable[[], float]
    ) -> None:
        self._errands, self._book, self._watch, self._yard, self._clock = errands, book, watch, yard, clock
        self._pause_until, self._pause = 0.0, PAUSE_S

    @property
    def ready(self) -> bool:
        return self._clock() >= self._pause_until

    def expect_nothing_held(self, attempt: Attempt) -> None:
        """The yard has no bytes of an attempt that was not started."""
        attempt.relay.offsets = dict.fromkeys(_files(attempt), 0)

    def expect_something_held(self, attempt: Attempt) -> None:
        attempt.relay.offsets = dict.fromkeys(_files(attempt), None)

    def advance(self) -> None:
        self.relay(self._book.in_phase(Phase.STARTED, Phase.OVER), self._watch.seen)

    def relay(self, attempts: Iterable[Attempt], seen: Mapping[str, Seen]) -> None:
        """Upload new bytes of these attempts, all in one errand."""
        attempts = list(attempts)
        for attempt in attempts:
            attempt.relay.has_more = attempt.relay.has_more and not attempt.is_drained
        if not self.ready:
            return
        pieces = [piece for attempt in attempts if _may_relay(attempt) for piece in _pieces(attempt, seen)]
        if not pieces:
            return
        for piece in pieces:
            piece.attempt.relay.busy = True

        def done(outcome: Outcome, _: Exception | None) -> None:
            held, error = outcome
            self._done(pieces, held)
            if error is None:
                self._pause = PAUSE_S
                return
            self._pause_until = self._clock() + self._pause
            self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
            self._failed(error)

        self._errands.send(LANE, lambda: _send_all(pieces, self._yard.append), done)

    def _done(self, pieces: list[FileChunk], held: list[int | None]) -> None:
        for piece in pieces:
            piece.attempt.relay.busy = False
        for piece, size in zip(pieces, held, strict=False):
            if size is None:
                piece.attempt.relay.disowned = True
                self._yard.report_again(piece.attempt)
                continue
            piece.attempt.relay.offsets[piece.file] = size
            if _goes_on(piece, size):
                piece.attempt.relay.has_more = True
                self._watch.look_now(piece.attempt)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, errors.YardUnreachable):
            self._yard.trouble(error)
        else:
            log.warning("the yard does not accept output of runs: %s", error)
        if isinstance(error, errors.DiskFull):
            for attempt in self._book.in_phase(Phase.OVER):
                attempt.relay.no_room = True


def _files(attempt: Attempt) -> list[str]:
    split = bool(attempt.claim.spec.get("split_output"))
    return [name for name in RELAYED_FILES if split or name not in ("stdout", "stderr")]


def _send_all(pieces: list[FileChunk], send: Callable[[FileChunk], int]) -> Outcome:
    """Until the first one that fails because of the yard."""
    held: list[int | None] = []
    for piece in pieces:
        try:
            held.append(send(piece))
        except errors.Stale:
            held.append(None)
        except Exception as error:
            return held, error
    return held, None


def _may_relay(attempt: Attempt) -> bool:
    return not (attempt.relay.busy or attempt.disowned or attempt.superseded)


def _goes_on(piece: FileChunk, size: int) -> bool:
    """Whether to look again at once: there is more, or may be after a mere query, or the end waits for it."""
    is_all = 0 < len(piece.data) < CHUNK and size == piece.offset + len(piece.data)
    return piece.attempt.phase is Phase.OVER or not is_all


def _pieces(attempt: Attempt, seen: Mapping[str, Seen]) -> list[FileChunk]:
    """New bytes; and for a file whose size only the yard knows, a query."""
    data = seen[attempt.place].data if attempt.place in seen else {}
    pieces = [
        FileChunk(attempt=attempt, file=name, offset=attempt.offsets[name] or 0, data=data[name]) for name in data
    ]
    unknown = [name for name, offset in attempt.offsets.items() if offset is None]
    return pieces + [FileChunk(attempt=attempt, file=name, offset=0, data=b"") for name in unknown]


def missing(attempt: Attempt) -> str:
    """What the yard lacks of an ended attempt, as `log: 3 of 7 bytes`; empty if it has all."""
    if attempt.disowned:
        return ""
    sizes = (attempt.record or {}).get("sizes") or {}
    for name, offset in attempt.offsets.items():
        if offset is None or attempt.relay.busy:
            return f"{name}: not known yet"
        if offset < sizes.get(name, 0):
            return f"{name}: {offset} of {sizes[name]} bytes"
    return "" if attempt.record is not None or attempt.is_drained else "its files were not read completely yet"
