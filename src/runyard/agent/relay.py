"""Bring the growing files of attempts to the yard, by offset.

The yard says after each piece how much it holds, and that is where the next piece begins: whatever was lost, repeated
or sent by an earlier incarnation, both sides agree again after one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from runyard import errors
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.errands import Errands
from runyard.hosts.base import CHUNK, Seen

LANE = "relay"
PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0  # after the yard could not take something, doubling


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    attempt: Attempt
    file: str
    offset: int
    data: bytes


Send = Callable[[Piece], int]  # the size that the yard holds afterwards
Failed = Callable[[Exception], None]
Outcome = tuple[list[int | None], Exception | None]  # sizes held, None where the attempt is not ours any more


class Relay:
    def __init__(self, errands: Errands, clock: Callable[[], float]) -> None:
        self._errands, self._clock = errands, clock
        self._pause_until, self._pause = 0.0, PAUSE_S

    @property
    def ready(self) -> bool:
        return self._clock() >= self._pause_until

    def relay(self, attempts: Iterable[Attempt], seen: Mapping[str, Seen], send: Send, failed: Failed) -> None:
        """Send what was seen of these attempts, all of it in one errand."""
        if not self.ready:
            return
        pieces = [piece for attempt in attempts if _may_relay(attempt) for piece in _pieces(attempt, seen)]
        if not pieces:
            return
        for piece in pieces:
            piece.attempt.relaying = True

        def done(outcome: Outcome, _: Exception | None) -> None:
            held, error = outcome
            self._done(pieces, held)
            if error is None:
                self._pause = PAUSE_S
                return
            self._pause_until = self._clock() + self._pause
            self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
            failed(error)

        self._errands.send(LANE, lambda: _send_all(pieces, send), done)

    def _done(self, pieces: list[Piece], held: list[int | None]) -> None:
        for piece in pieces:
            piece.attempt.relaying = False
        for piece, size in zip(pieces, held, strict=False):
            if size is None:
                piece.attempt.disown()
                continue
            piece.attempt.offsets[piece.file] = size
            if _goes_on(piece, size):
                piece.attempt.has_more = True
                piece.attempt.look_at = min(piece.attempt.look_at, self._clock())


def _send_all(pieces: list[Piece], send: Send) -> Outcome:
    """Until the first one that fails for a reason of the yard's own."""
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
    return not (attempt.relaying or attempt.disowned or attempt.superseded)


def _goes_on(piece: Piece, size: int) -> bool:
    """Whether to look again at once: there is more, or may be since this was only a question, or somebody waits."""
    is_all = 0 < len(piece.data) < CHUNK and size == piece.offset + len(piece.data)
    return piece.attempt.phase is Phase.OVER or not is_all


def _pieces(attempt: Attempt, seen: Mapping[str, Seen]) -> list[Piece]:
    """New bytes; and for a file of which only the yard knows how much it holds, a question."""
    data = seen[attempt.place].data if attempt.place in seen else {}
    pieces = [Piece(attempt=attempt, file=name, offset=attempt.offsets[name] or 0, data=data[name]) for name in data]
    unknown = [name for name, offset in attempt.offsets.items() if offset is None]
    return pieces + [Piece(attempt=attempt, file=name, offset=0, data=b"") for name in unknown]


def missing(attempt: Attempt) -> str:
    """What the yard does not hold yet of an attempt that is over, as `log: 3 of 7 bytes`; empty when it has all."""
    if attempt.disowned:
        return ""
    sizes = (attempt.record or {}).get("sizes") or {}
    for name, offset in attempt.offsets.items():
        if offset is None or attempt.relaying:
            return f"{name}: not known yet"
        if offset < sizes.get(name, 0):
            return f"{name}: {offset} of {sizes[name]} bytes"
    return "" if attempt.record is not None or attempt.drained else "its files were not read to their ends yet"
