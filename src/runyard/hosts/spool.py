"""Files on their way from another machine: kept by digest until they are whole, so that a cut transfer goes on."""

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
from runyard.hosts.base import Source, Unreachable

STALE_S = 7 * 86400.0  # a part that nobody went on with for so long is removed
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

log = logging.getLogger(__name__)

# Sources with the offsets to begin at → pieces, each with the number of its source; raises Unreachable when it is cut.
Stream = Callable[[Sequence[tuple[Source, int]]], Iterator[tuple[int, bytes]]]


class Spool:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def files(self, sources: Sequence[Source], stream: Stream) -> Iterator[dict[str, Path]]:
        """The files, whole and checked, by digest; gone when the context ends. Those that are not what they were are
        left out. Raises Unreachable, and what came until then stays for the next time."""
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

    def _bring_right(self, sources: Sequence[Source], stream: Stream) -> None:
        """A part from before may be damaged, as after a power cut: what it led to is brought once more as a whole."""
        self._tidy()
        resumed = [source for source in sources if self._size(source)]
        self._bring(sources, stream)
        wrong = [source for source in resumed if not self._is_right(source)]
        self._forget(wrong)
        self._bring(wrong, stream)

    def _bring(self, sources: Sequence[Source], stream: Stream) -> None:
        """As long as anything comes, a cut is only an interruption."""
        while True:
            before = self._held(sources)
            try:
                self._receive([source for source in sources if self._size(source) < source.size], stream)
                return
            except Unreachable as error:
                if self._held(sources) == before:
                    raise
                log.info("%s; going on after %d bytes", error, self._held(sources))

    def _receive(self, sources: Sequence[Source], stream: Stream) -> None:
        if not sources:
            return
        pieces = stream([(source, self._size(source)) for source in sources])
        for number, group in groupby(pieces, key=itemgetter(0)):
            with self._part(sources[number]).open("ab") as part:
                part.writelines(data for _, data in group)

    def _is_right(self, source: Source) -> bool:
        part = self._part(source)
        if not source.size:
            part.touch(mode=0o600)
        try:
            with part.open("rb") as file:
                return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == source.digest
        except FileNotFoundError:
            return False

    def _forget(self, sources: Iterable[Source]) -> None:
        for source in sources:
            self._part(source).unlink(missing_ok=True)

    def _part(self, source: Source) -> Path:
        return self._directory / f"{source.digest.removeprefix('sha256:')}.part"

    def _size(self, source: Source) -> int:
        try:
            return self._part(source).stat().st_size
        except FileNotFoundError:
            return 0

    def _held(self, sources: Sequence[Source]) -> int:
        return sum(map(self._size, sources))

    def _tidy(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in self._directory.glob("*.part"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > STALE_S:
                    part.unlink()
