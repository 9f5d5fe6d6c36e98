"""A run's log: all of it, its last lines, or live until the run has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client.retries import Patience

if TYPE_CHECKING:
    from runyard.client.session import Session

BLOCK = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """One log of a run. Without `attempt`, all attempts one after the other, as the yard joins them."""

    client: Session
    run: int
    attempt: int | None = None
    file: str = "log"

    def read(self, offset: int = 0, limit: int | None = None) -> Iterator[bytes]:
        """What is there now, from byte `offset` on."""
        with self.client.open("GET", self._path, query=self._query(offset=offset, limit=limit)) as stream:
            yield from stream

    def size(self) -> int:
        with self.client.open("GET", self._path, query=self._query(offset=0, limit=0)) as stream:
            stream.read()
            return int(stream.headers.get("X-Log-Size") or 0)

    def tail_offset(self, lines: int) -> int:
        """Where the last `lines` lines begin."""
        end = start = self.size()
        found = 0
        while start > 0:
            begin = max(0, start - BLOCK)
            block = b"".join(self.read(begin, start - begin))
            if start == end and block.endswith(b"\n"):
                block = block[:-1]  # the newline that ends the last line begins no other
            found, position = _newline_from_end(block, lines, found)
            if position is not None:
                return begin + position + 1
            start = begin
        return end if lines == 0 else 0

    def follow(self, offset: int = 0) -> Iterator[bytes]:
        """Bytes as they are written, until the run has ended; continues after a restart of the yard."""
        patience = Patience()
        while True:
            try:
                query = self._query(offset=offset, follow=1)
                with self.client.open("GET", self._path, query=query, timeout=None) as stream:
                    patience.met()
                    for chunk in stream:
                        offset += len(chunk)
                        yield chunk
                return
            except errors.YardUnreachable as error:
                patience.endure(error)

    @property
    def _path(self) -> str:
        return f"/runs/{self.run}/log"

    def _query(self, **further: Any) -> dict[str, Any]:
        return {"attempt": self.attempt, "file": None if self.file == "log" else self.file, **further}


def _newline_from_end(block: bytes, wanted: int, found: int) -> tuple[int, int | None]:
    """Count newlines backwards; the position of the one before the wanted lines, once it is found."""
    position = len(block)
    while found < wanted:
        position = block.rfind(b"\n", 0, position)
        if position < 0:
            return found, None
        found += 1
    return found, position
