"""Partial files from another machine: kept by digest until complete, so that an interrupted transfer can continue."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from runyard import errors
from runyard.hosts.base import SourceFile, Unreachable

STALE_S = 7 * 86400.0  # a partial file that was not continued for so long is deleted
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

log = logging.getLogger(__name__)

# Sources with the offsets to begin at → pieces, each with the number of its source; raises Unreachable when it is cut.
Stream = Callable[[Sequence[tuple[SourceFile, int]]], Iterator[tuple[int, bytes]]]


class PartialFiles:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def files(self, sources: Sequence[SourceFile], stream: Stream) -> Iterator[dict[str, Path]]:
        """The files, complete and checked, by digest; deleted when the context ends. Files that have changed are left
        out. Raises Unreachable; bytes received until then are kept for the next time."""
        wanted = {source.digest: source for source in sources}
        try:
            self._bring_right(list(wanted.values()), stream)
            whole = {digest: self._part(source) for digest, source in wanted.items() if self._is_right(source)}
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise errors.DiskFull(f"there is no room in {self._directory} for outputs on their way") from error
        try:
            yield whole
        finally:
            self._forget(wanted.values())

    def _bring_right(self, sources: Sequence[SourceFile], stream: Stream) -> None:
        """An earlier partial file may be damaged, as after a power failure: then the whole file is fetched again."""
        self._tidy()
        resumed = [source for source in sources if self._size(source)]
        self._bring(sources, stream)
        wrong = [source for source in resumed if not self._is_right(source)]
        self._forget(wrong)
        self._bring(wrong, stream)

    def _bring(self, sources: Sequence[SourceFile], stream: Stream) -> None:
        """As long as data arrives, a lost connection is only an interruption."""
        while True:
            before = self._held(sources)
            try:
                self._receive([source for source in sources if self._size(source) < source.size], stream)
                return
            except Unreachable as error:
                if self._held(sources) == before:
                    raise
                log.info("%s; going on after %d bytes", error, self._held(sources))

    def _receive(self, sources: Sequence[SourceFile], stream: Stream) -> None:
        if not sources:
            return
        pieces = stream([(source, self._size(source)) for source in sources])
        for number, group in groupby(pieces, key=itemgetter(0)):
            with self._part(sources[number]).open("ab") as part:
                part.writelines(data for _, data in group)

    def _is_right(self, source: SourceFile) -> bool:
        part = self._part(source)
        if not source.size:
            part.touch(mode=0o600)
        try:
            with part.open("rb") as file:
                return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == source.digest
        except FileNotFoundError:
            return False

    def _forget(self, sources: Iterable[SourceFile]) -> None:
        for source in sources:
            self._part(source).unlink(missing_ok=True)

    def _part(self, source: SourceFile) -> Path:
        return self._directory / f"{source.digest.removeprefix('sha256:')}.part"

    def _size(self, source: SourceFile) -> int:
        try:
            return self._part(source).stat().st_size
        except FileNotFoundError:
            return 0

    def _held(self, sources: Sequence[SourceFile]) -> int:
        return sum(map(self._size, sources))

    def _tidy(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in self._directory.glob("*.part"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > STALE_S:
                    part.unlink()
