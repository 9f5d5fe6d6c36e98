"""The continuous log of a run: the logs of all attempts one after the other, with a marker between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runyard.blobs import AttemptFiles
from runyard.model.wire import AttemptKey


class LogView:
    """Offsets into the whole. A marker depends on nothing but the attempt's number, so offsets never move."""

    def __init__(self, files: AttemptFiles, run_id: int, attempts: Sequence[int], file: str, *, marked: bool) -> None:
        self._files = files
        self._parts = [
            (AttemptKey(run=run_id, attempt=number), _marker(number) if marked else b"") for number in attempts
        ]
        self._file = file

    def size(self) -> int:
        return sum(len(marker) + self._files.size(key, self._file) for key, marker in self._parts)

    def read(self, offset: int, limit: int) -> bytes:
        return b"".join(self._pieces(offset, limit))

    def _pieces(self, offset: int, limit: int) -> Iterator[bytes]:
        for key, marker in self._parts:
            size = len(marker) + self._files.size(key, self._file)
            if offset < size and limit > 0:
                piece = self._read_part(key, marker, offset, limit)
                limit -= len(piece)
                yield piece
            offset = max(0, offset - size)

    def _read_part(self, key: AttemptKey, marker: bytes, offset: int, limit: int) -> bytes:
        head = marker[offset : offset + limit]
        if len(head) == limit:
            return head
        return head + self._files.read(key, self._file, max(0, offset - len(marker)), limit - len(head))


def _marker(number: int) -> bytes:
    return b"" if number == 1 else f"\n--- attempt {number} ---\n".encode()
